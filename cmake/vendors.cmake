# NPU families: those to build, and the only list of them, from which the registries in C++ are made.
file(GLOB vendor_folders RELATIVE ${PROJECT_SOURCE_DIR}/src/npus CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/npus/*)
set(SKILLET_VENDORS "vivante;rockchip;ethosu;toy" CACHE STRING
  "NPU families to build, of ${vendor_folders}; the first chip of the first one with a simulator is the default")
foreach(vendor IN LISTS SKILLET_VENDORS)
  if(NOT vendor IN_LIST vendor_folders)
    message(FATAL_ERROR "SKILLET_VENDORS: no '${vendor}'; there are ${vendor_folders}")
  endif()
endforeach()

set(SKILLET_GENERATED_DIR ${PROJECT_BINARY_DIR}/generated)
add_library(skillet_vendors INTERFACE)
target_include_directories(skillet_vendors INTERFACE ${SKILLET_GENERATED_DIR})

# skillet_register(DRIVER|SIMULATOR|ETNAVIV|ROCKET|ETHOSU VENDOR [LIBRARY]): called in a family's folder for each of its parts.
# DRIVER:     skillet::npus::VENDOR::driver()
# SIMULATOR:  skillet::sim::VENDOR::simulator_of(chip, quirks), skillet::sim::VENDOR::quirks(chip)
# ETNAVIV:    skillet::fake::etnaviv::VENDOR::identity_of(chip), the identity of its chips for that kernel driver
# ROCKET:     skillet::fake::rocket::VENDOR::cores_of(chip), likewise
# ETHOSU:     skillet::fake::ethosu::VENDOR::identity_of(chip), likewise
function(skillet_register part vendor)
  set(library ${ARGN})
  set_property(GLOBAL APPEND PROPERTY SKILLET_VENDOR_ROWS "${part}(${vendor})")
  if(part STREQUAL "DRIVER")
    target_link_libraries(skillet_npu PUBLIC skillet_${library})
  elseif(part STREQUAL "SIMULATOR")
    target_link_libraries(skillet_sim PUBLIC skillet_${library})
    set_property(GLOBAL APPEND PROPERTY SKILLET_SIMULATORS ${library} ${vendor}_hw)
  endif()
endfunction()

# skillet_has_vendors(OUT VENDORS...): whether all of them are built
function(skillet_has_vendors out)
  set(${out} TRUE PARENT_SCOPE)
  foreach(vendor IN LISTS ARGN)
    if(NOT vendor IN_LIST SKILLET_VENDORS)
      set(${out} FALSE PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

# Writes generated/vendors.inc: a row for each part that is built, and a row for each chip of any family, so that an error
# can name the family that a chip needs.
function(skillet_write_vendors)
  get_property(rows GLOBAL PROPERTY SKILLET_VENDOR_ROWS)
  foreach(vendor IN LISTS SKILLET_VENDORS)
    list(APPEND rows "VENDOR(${vendor})")
  endforeach()
  set(others ${vendor_folders})
  list(REMOVE_ITEM others ${SKILLET_VENDORS})
  foreach(vendor IN LISTS SKILLET_VENDORS others)
    set(chips ${PROJECT_SOURCE_DIR}/src/npus/${vendor}/hw/chips.def)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${chips})
    file(STRINGS ${chips} lines REGEX "^CHIP\\([a-z0-9_-]+,")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^CHIP\\(([a-z0-9_-]+),.*" "\\1" chip "${line}")
      list(APPEND rows "CHIP(${vendor}, ${chip})")
    endforeach()
  endforeach()
  set(parts VENDOR DRIVER SIMULATOR ETNAVIV ROCKET ETHOSU CHIP)
  list(TRANSFORM parts REPLACE "(.+)" "#ifndef \\1\n#define \\1(...)\n#endif" OUTPUT_VARIABLE defaults)
  list(TRANSFORM parts PREPEND "#undef " OUTPUT_VARIABLE ends)
  list(JOIN defaults "\n" defaults)
  list(JOIN rows "\n" rows)
  list(JOIN ends "\n" ends)
  file(CONFIGURE OUTPUT ${SKILLET_GENERATED_DIR}/vendors.inc @ONLY
    CONTENT "// Made of SKILLET_VENDORS by cmake/vendors.cmake.\n@defaults@\n@rows@\n@ends@\n")
endfunction()
