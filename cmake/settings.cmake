# settings.cmake: build type, compiler cache, warnings and sanitizers of everything Tutti compiles.
# SPDX-License-Identifier: Apache-2.0

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

if(SKBUILD)  # a wheel: programs go where an environment has its programs
  set(CMAKE_INSTALL_BINDIR ${SKBUILD_SCRIPTS_DIR})
endif()

if(PROJECT_IS_TOP_LEVEL AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(TUTTI_CCACHE ccache)
  mark_as_advanced(TUTTI_CCACHE)
  if(TUTTI_CCACHE)
    # Where the sources lie is left out of what is compared: the build of a copy, such as a wheel's, finds what this one
    # compiled, if its build folder lies as deep in it.
    set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_NOHASHDIR=1 CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}
                                    CCACHE_SLOPPINESS=pch_defines,time_macros ${TUTTI_CCACHE})
  endif()
endif()

# What every target of ours is compiled with. The installed tutti::tutti carries none of it.
add_library(tutti_options INTERFACE)
target_include_directories(tutti_options INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
target_compile_options(tutti_options INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wno-sign-conversion -Wshadow
                                               -Wnon-virtual-dtor
                                               # designated initialisers leave fields out on purpose
                                               -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # Warnings of gcc's optimiser, which guesses: the first is wrong inside fmt 9 with gcc 12, the others are shown but
  # do not stop a build in which warnings are errors.
  target_compile_options(tutti_options INTERFACE -Wno-stringop-overflow -Wno-error=maybe-uninitialized
                                                 -Wno-error=array-bounds -Wno-error=restrict -Wno-error=dangling-pointer)
endif()

set(TUTTI_SANITIZE_OPTIONS "")
if(TUTTI_SANITIZE)
  list(APPEND TUTTI_SANITIZE_OPTIONS -fsanitize=${TUTTI_SANITIZE} -fno-sanitize-recover=all)
  target_compile_options(tutti_options INTERFACE -fno-omit-frame-pointer)
  if(TUTTI_SANITIZE MATCHES undefined)
    # The check of virtual tables opens a pipe, and reports nonsense in tests that run out of file descriptors.
    list(APPEND TUTTI_SANITIZE_OPTIONS -fno-sanitize=vptr)
  endif()
endif()
if(TUTTI_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang)
    message(FATAL_ERROR "TUTTI_FUZZ needs libFuzzer, which comes with clang: configure with --preset asan "
                        "or -DCMAKE_CXX_COMPILER=clang++")
  endif()
endif()
target_compile_options(tutti_options INTERFACE ${TUTTI_SANITIZE_OPTIONS})
target_link_options(tutti_options INTERFACE ${TUTTI_SANITIZE_OPTIONS})

# Tests spend their time in the library; what costs is to compile them, twice as much at -O1 under the sanitizers.
set(TUTTI_TEST_OPTIMISATION $<$<CONFIG:Release>:-O1>)
if(TUTTI_SANITIZE)
  set(TUTTI_TEST_OPTIMISATION -O0)
endif()

# The headers that all tests include are parsed once. The library has no such thing: a layer's files are compiled several at a
# time anyway (TUTTI_UNITY). The compiler cache takes what uses such headers only with these options, and its own setting above.
set(TUTTI_PRECOMPILED_OPTIONS "$<IF:$<CXX_COMPILER_ID:GNU>,-fpch-preprocess,SHELL:-Xclang -fno-pch-timestamp>")
function(tutti_precompile_test target)
  if(NOT TARGET tutti_precompiled)
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled.cpp CONTENT "int main() {}\n")
    add_executable(tutti_precompiled EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/precompiled.cpp)
    target_link_libraries(tutti_precompiled PRIVATE tutti_options GTest::gtest GTest::gmock)
    target_compile_options(tutti_precompiled PRIVATE ${TUTTI_TEST_OPTIMISATION} ${TUTTI_PRECOMPILED_OPTIONS})
    target_precompile_headers(tutti_precompiled PRIVATE <algorithm> <chrono> <fmt/format.h> <fmt/ranges.h> <functional>
                                                        <gmock/gmock.h> <gtest/gtest.h> <map> <memory> <string> <vector>)
  endif()
  target_compile_options(${target} PRIVATE ${TUTTI_PRECOMPILED_OPTIONS})
  target_precompile_headers(${target} REUSE_FROM tutti_precompiled)
endfunction()
