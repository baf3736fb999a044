# Helpers of the build: one static library per folder of src/, unit tests beside the code, fuzz targets.

add_library(skillet_flags INTERFACE)
target_include_directories(skillet_flags INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_compile_options(skillet_flags INTERFACE -Wall -Wextra -Wshadow -Wno-missing-field-initializers)
if(SKILLET_WERROR)
  target_compile_options(skillet_flags INTERFACE -Werror)
endif()
if(SKILLET_SANITIZE)
  target_compile_options(skillet_flags INTERFACE -fsanitize=${SKILLET_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  # Programs without the flags above link libraries that have them.
  add_link_options(-fsanitize=${SKILLET_SANITIZE})
endif()
if(SKILLET_FUZZ)
  target_compile_options(skillet_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# skillet_static_or_shared(NAME PACKAGE): target skillet_NAME, static when there is one, so that what is loaded into
# processes of others does not depend on it
function(skillet_static_or_shared name package)
  add_library(skillet_${name} INTERFACE)
  find_library(${package}_STATIC NAMES lib${name}.a HINTS ${${package}_LIBRARY_DIRS})
  if(${package}_STATIC)
    target_link_libraries(skillet_${name} INTERFACE ${${package}_STATIC})
  else()
    target_link_libraries(skillet_${name} INTERFACE PkgConfig::${package})
  endif()
endfunction()

# skillet_self_contained(TARGET): needs nothing but the C library, so that one file runs on any distribution
function(skillet_self_contained target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT SKILLET_SANITIZE)
    target_link_libraries(${target} PRIVATE skillet_linked_in)
    # Before the shared libraries of the same names, which --as-needed then leaves out.
    target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc -Wl,--as-needed -Wl,-z,defs -Wl,-z,relro -Wl,-z,now)
  endif()
endfunction()

# skillet_library(NAME SOURCES... LIBS...): static library skillet_NAME
function(skillet_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  add_library(skillet_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(skillet_${name} PUBLIC skillet_flags ${ARG_LIBS})
endfunction()

# skillet_test_headers(TARGET): what nearly all tests include is read once, and little is gained by optimising them. Not with
# clang: the build with it shows that each file includes what it uses.
function(skillet_test_headers name)
  set(flags $<$<CONFIG:RelWithDebInfo>:-O1>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL Clang)
    target_compile_options(${name} PRIVATE ${flags})
    return()
  endif()
  # For ccache; and a test that links no fmt reads the headers as they are.
  list(APPEND flags -fpch-preprocess -Wno-error=invalid-pch)
  if(NOT TARGET skillet_test_headers)
    # A program, since programs are not compiled as libraries are.
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/test_headers.cpp CONTENT "int main() {}\n")
    add_executable(skillet_test_headers EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/generated/test_headers.cpp)
    target_link_libraries(skillet_test_headers PRIVATE skillet_base GTest::gtest)
    target_compile_options(skillet_test_headers PRIVATE ${flags})
    target_precompile_headers(skillet_test_headers PRIVATE <algorithm> <array> <filesystem> <map> <optional> <span> <string>
      <vector> <fmt/format.h> <gtest/gtest.h>)
  endif()
  target_precompile_headers(${name} REUSE_FROM skillet_test_headers)
  target_compile_options(${name} PRIVATE ${flags})
endfunction()

# skillet_test(NAME SOURCES... LIBS... [LABEL fast|long] [VENDORS...]): GoogleTest program NAME_test; `long` ones run in
# CI only; there is none when one of VENDORS is not built
function(skillet_test name)
  if(NOT SKILLET_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "LABEL" "SOURCES;LIBS;VENDORS" ${ARGN})
  skillet_has_vendors(has_vendors ${ARG_VENDORS})
  if(NOT has_vendors)
    return()
  endif()
  if(NOT ARG_LABEL)
    set(ARG_LABEL fast)
  endif()
  add_executable(${name}_test ${ARG_SOURCES})
  target_link_libraries(${name}_test PRIVATE ${ARG_LIBS} skillet_in_tree GTest::gtest_main)
  skillet_test_headers(${name}_test)
  add_test(NAME ${name} COMMAND ${name}_test)
  set_tests_properties(${name} PROPERTIES LABELS ${ARG_LABEL})
endfunction()

# skillet_fuzz(NAME SOURCES... LIBS... [VENDORS...]): libFuzzer program NAME_fuzz (clang, -DSKILLET_FUZZ=ON)
function(skillet_fuzz name)
  if(NOT SKILLET_FUZZ)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS;VENDORS" ${ARGN})
  skillet_has_vendors(has_vendors ${ARG_VENDORS})
  if(NOT has_vendors)
    return()
  endif()
  add_executable(${name}_fuzz ${ARG_SOURCES})
  target_link_libraries(${name}_fuzz PRIVATE ${ARG_LIBS})
  target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
endfunction()
