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
    set(CMAKE_CXX_COMPILER_LAUNCHER ${TUTTI_CCACHE})
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
    message(FATAL_ERROR "TUTTI_FUZZ needs libFuzzer, which comes with clang: configure with --preset fuzz "
                        "or -DCMAKE_CXX_COMPILER=clang++")
  endif()
  # Coverage in the layers too: a fuzzer that sees only its own file explores nothing.
  list(APPEND TUTTI_SANITIZE_OPTIONS -fsanitize=fuzzer-no-link)
endif()
target_compile_options(tutti_options INTERFACE ${TUTTI_SANITIZE_OPTIONS})
target_link_options(tutti_options INTERFACE ${TUTTI_SANITIZE_OPTIONS})

# Tests spend their time in the library; what costs is to compile them, twice as much at -O1 under the sanitizers.
set(TUTTI_TEST_OPTIMISATION $<$<CONFIG:Release>:-O1>)
if(TUTTI_SANITIZE)
  set(TUTTI_TEST_OPTIMISATION -O0)
endif()

# Headers that all include are parsed once. The fuzzers' build, which compiles the library with another compiler, has none
# of this, so that a missing include is noticed. KIND is library or test, which are compiled with different flags.
function(tutti_precompile target kind)
  if(TUTTI_FUZZ)
    return()
  endif()
  set(source ${PROJECT_BINARY_DIR}/precompiled_${kind}.cpp)
  set(precompiled tutti_precompiled_${kind})
  if(NOT TARGET ${precompiled})
    file(CONFIGURE OUTPUT ${source} CONTENT "int main() {}\n")
    if(kind STREQUAL test)
      add_executable(${precompiled} EXCLUDE_FROM_ALL ${source})  # for -fpie, like the tests
      target_link_libraries(${precompiled} PRIVATE GTest::gtest GTest::gmock)
      target_compile_options(${precompiled} PRIVATE ${TUTTI_TEST_OPTIMISATION})
      target_precompile_headers(${precompiled} PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
    else()
      add_library(${precompiled} OBJECT EXCLUDE_FROM_ALL ${source})
    endif()
    target_link_libraries(${precompiled} PRIVATE tutti_options)
    target_precompile_headers(${precompiled} PRIVATE <algorithm> <chrono> <fmt/format.h> <fmt/ranges.h> <functional> <map>
                                                     <memory> <string> <vector>)
  endif()
  target_precompile_headers(${target} REUSE_FROM tutti_precompiled_${kind})
endfunction()
