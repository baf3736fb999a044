# Helpers of the build: one static library per folder of src/, unit tests beside the code, fuzz targets.

add_library(skillet_flags INTERFACE)
target_include_directories(skillet_flags INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_compile_options(skillet_flags INTERFACE -Wall -Wextra -Wshadow -Wno-missing-field-initializers)
# CMake's unity sources include by absolute paths. Without these in __FILE__, clones of this tree share ccache's objects of tests.
target_compile_options(skillet_flags INTERFACE -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
if(SKILLET_WERROR)
  target_compile_options(skillet_flags INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL Clang AND CMAKE_UNITY_BUILD)
  target_compile_options(skillet_flags INTERFACE -Wno-shadow)  # shadowed names are in other sources of the unity; the GCC builds warn of real ones
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_UNITY_BUILD)
  # GCC spends a tenth of its time on garbage collection. Less of it takes memory, which unity builds need anyway.
  target_compile_options(skillet_flags INTERFACE --param=ggc-min-heapsize=1000000)
endif()
if(SKILLET_SANITIZE)
  target_compile_options(skillet_flags INTERFACE -fsanitize=${SKILLET_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  # Programs without the flags above link libraries with them.
  add_link_options(-fsanitize=${SKILLET_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL Clang)
    find_program(LLD ld.lld)
    if(LLD)
      add_link_options(-fuse-ld=lld)  # takes a quarter of GNU ld's time
    endif()
  endif()
endif()
if(SKILLET_FUZZ)
  target_compile_options(skillet_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# skillet_static_or_shared(NAME PACKAGE): target skillet_NAME, static if a static library exists. Libraries loaded into
# other processes then do not depend on it.
function(skillet_static_or_shared name package)
  add_library(skillet_${name} INTERFACE)
  find_library(${package}_STATIC NAMES lib${name}.a HINTS ${${package}_LIBRARY_DIRS})
  if(${package}_STATIC)
    target_link_libraries(skillet_${name} INTERFACE ${${package}_STATIC})
  else()
    target_link_libraries(skillet_${name} INTERFACE PkgConfig::${package})
  endif()
endfunction()

# With the C library of Debian 12 or newer: self-contained files run with glibc 2.28 and newer, see src/base/older_glibc.cpp.
include(CheckCXXSourceCompiles)
set(older_glibc_libraries LINKER:--no-as-needed -l:libpthread.so.0 -l:libdl.so.2 LINKER:--as-needed)
set(CMAKE_REQUIRED_LINK_OPTIONS ${older_glibc_libraries})
check_cxx_source_compiles("
#include <features.h>
#if !__GLIBC_PREREQ(2, 36) || !(defined(__x86_64__) || defined(__aarch64__))
#error
#endif
int main() {}" SKILLET_OLDER_GLIBC)
unset(CMAKE_REQUIRED_LINK_OPTIONS)
file(STRINGS ${PROJECT_SOURCE_DIR}/src/base/older_glibc.def older_glibc_rows REGEX "^(OLDER|NEWER)")
list(TRANSFORM older_glibc_rows REPLACE "^(OLDER\\([a-z*]+, |NEWER\\()([a-z0-9_]+).*" "LINKER:--wrap=\\2")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/base/older_glibc.def)

# skillet_self_contained(TARGET): links everything except the C library statically, so that one file runs on any distribution
function(skillet_self_contained target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT SKILLET_SANITIZE)
    target_link_libraries(${target} PRIVATE skillet_linked_in)
    # Before the shared libraries of the same names, which --as-needed then drops.
    target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc -Wl,--as-needed -Wl,-z,defs -Wl,-z,relro -Wl,-z,now)
    if(SKILLET_OLDER_GLIBC)
      target_link_options(${target} PRIVATE ${older_glibc_rows} ${older_glibc_libraries} LINKER:--gc-sections)
    endif()
  endif()
endfunction()

# skillet_quick: for code that gains little by optimisation, such as printing. skillet_plain: for tests, which gain nothing by it, and
# little by debug information.
add_library(skillet_quick INTERFACE)
target_compile_options(skillet_quick INTERFACE $<$<NOT:$<CONFIG:Debug>>:-O1>)
add_library(skillet_plain INTERFACE)
target_compile_options(skillet_plain INTERFACE $<$<NOT:$<CONFIG:Debug>>:-O0$<SEMICOLON>-g0>)
if(SKILLET_SANITIZE)
  target_compile_options(skillet_plain INTERFACE -O0)
endif()
target_link_options(skillet_plain INTERFACE $<$<NOT:$<CONFIG:Debug>>:LINKER:--strip-debug>)

# skillet_reads_once(TARGET SET LIBS HEADERS...): the headers, and those that LIBS need for them, are compiled once for all
# targets of this SET. Not with clang, which checks that each file includes what it uses. Only headers of other libraries:
# ccache shares a precompiled header between clones if only comments differ, and `#pragma once` then fails for our headers.
function(skillet_reads_once name set libs)
  if(CMAKE_CXX_COMPILER_ID STREQUAL Clang)
    return()
  endif()
  # For ccache; and a target that does not link fmt compiles the headers itself.
  set(flags -fpch-preprocess -Wno-error=invalid-pch)
  get_target_property(type ${name} TYPE)
  if(NOT TARGET skillet_${set}_headers)
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/${set}_headers.cpp CONTENT "int main() {}\n")
    if(type STREQUAL EXECUTABLE)  # compiled with other flags than libraries
      add_executable(skillet_${set}_headers EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/generated/${set}_headers.cpp)
    else()
      add_library(skillet_${set}_headers OBJECT EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/generated/${set}_headers.cpp)
    endif()
    target_link_libraries(skillet_${set}_headers PRIVATE skillet_flags ${libs})
    target_compile_options(skillet_${set}_headers PRIVATE ${flags})
    target_precompile_headers(skillet_${set}_headers PRIVATE ${ARGN})
  endif()
  target_precompile_headers(${name} REUSE_FROM skillet_${set}_headers)
  target_compile_options(${name} PRIVATE ${flags})
endfunction()

function(skillet_library_headers name)
  skillet_reads_once(${name} library fmt::fmt <algorithm> <array> <cmath> <filesystem> <functional> <map> <memory> <optional>
    <set> <span> <string> <vector> <fmt/format.h>)
endfunction()

# If the preset asks for it (CMAKE_UNITY_BUILD), several sources of a library or a test are compiled as one, because most of the
# time goes into headers. APART: sources left out, because their names collide with others in the target. `./x lint
# --tidy` compiles each source by itself with clang, so each must include what it uses.

# skillet_library(NAME [PLAIN] SOURCES... LIBS... [APART...]): static library skillet_NAME; PLAIN: does not use fmt
function(skillet_library name)
  cmake_parse_arguments(ARG "PLAIN" "" "SOURCES;LIBS;APART" ${ARGN})
  set_source_files_properties(${ARG_APART} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  add_library(skillet_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(skillet_${name} PUBLIC skillet_flags ${ARG_LIBS})
  if(NOT ARG_PLAIN)
    skillet_library_headers(skillet_${name})
  endif()
endfunction()

function(skillet_test_headers name)
  skillet_reads_once(${name} test "skillet_base;GTest::gtest;skillet_plain" <algorithm> <array> <filesystem> <map> <optional> <span>
    <string> <vector> <fmt/format.h> <gtest/gtest.h>)
  target_link_libraries(${name} PRIVATE skillet_plain)
  # Tests that do not link fmt read the same headers.
  target_compile_definitions(${name} PRIVATE $<TARGET_PROPERTY:fmt::fmt,INTERFACE_COMPILE_DEFINITIONS>)
endfunction()

# skillet_test(NAME SOURCES... LIBS... [APART...] [LABEL fast|long] [LONG_CASES...] [VENDORS...]): GoogleTest program NAME_test.
# Tests with LABEL long run in CI only, and so do LONG_CASES (patterns of GoogleTest), as the test NAME_long. Without one of VENDORS
# in the build, there is no test.
function(skillet_test name)
  if(NOT SKILLET_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "LABEL" "SOURCES;LIBS;APART;LONG_CASES;VENDORS" ${ARGN})
  set_source_files_properties(${ARG_APART} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  skillet_has_vendors(has_vendors ${ARG_VENDORS})
  if(NOT has_vendors)
    return()
  endif()
  if(NOT ARG_LABEL)
    set(ARG_LABEL fast)
  endif()
  add_executable(${name}_test $<TARGET_OBJECTS:skillet_quick_templates> ${ARG_SOURCES})
  if(SKILLET_SANITIZE AND ARG_LABEL STREQUAL long)  # sanitized builds do not run it
    set_target_properties(${name}_test PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
  target_link_libraries(${name}_test PRIVATE ${ARG_LIBS} skillet_in_tree GTest::gtest_main)
  skillet_test_headers(${name}_test)
  list(JOIN ARG_LONG_CASES ":" long_cases)
  add_test(NAME ${name} COMMAND ${name}_test $<$<BOOL:${long_cases}>:--gtest_filter=-${long_cases}>)
  set_tests_properties(${name} PROPERTIES LABELS ${ARG_LABEL})
  if(long_cases)
    add_test(NAME ${name}_long COMMAND ${name}_test --gtest_filter=${long_cases})
    set_tests_properties(${name}_long PROPERTIES LABELS long)
  endif()
endfunction()

# skillet_long_seeds(NAME SOME REST): a test of random networks uses the first SOME seeds; CI also uses the next REST, as NAME_seeds.
# Sanitized builds choose their own seeds.
function(skillet_long_seeds name some rest)
  if(NOT TARGET ${name}_test OR SKILLET_SANITIZE)
    return()
  endif()
  math(EXPR first "${some} + 1")
  add_test(NAME ${name}_seeds COMMAND ${name}_test)
  set_tests_properties(${name}_seeds PROPERTIES LABELS long)
  set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT SKILLET_RANDOM_GRAPHS=${some})
  set_property(TEST ${name}_seeds APPEND PROPERTY ENVIRONMENT SKILLET_RANDOM_GRAPHS=${rest} SKILLET_RANDOM_GRAPHS_FIRST=${first})
endfunction()

# skillet_long_methods(NAME COMMAND...): runs a Python test in CI with LONG_CASES in its environment, as the test NAME_long.
# It then runs the unittest methods test_long_..., which tests/integration/long_cases.py leaves out of NAME.
function(skillet_long_methods name)
  add_test(NAME ${name}_long COMMAND ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name}_long PROPERTIES LABELS long ENVIRONMENT LONG_CASES=1)
endfunction()

# skillet_fuzz(NAME SOURCES... LIBS... [VENDORS...]): libFuzzer program NAME_fuzz, with the sanitizers of clang
function(skillet_fuzz name)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL Clang OR NOT SKILLET_SANITIZE)
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
  if(NOT TARGET fuzz_programs)
    add_custom_target(fuzz_programs)
  endif()
  add_dependencies(fuzz_programs ${name}_fuzz)
endfunction()
