# layers.cmake: how a folder of src/ becomes part of the library.
# SPDX-License-Identifier: Apache-2.0
#
#   tutti_layer(NAME SOURCES a.cpp b.cpp TESTS a_test.cpp LIBRARIES OpenSSL::Crypto FUZZERS frame_fuzz.cpp
#               SUPPORT link_world.cpp TEST_LIBRARIES tutti_verify LABELS threads COST 50)
#
# Each layer is a static library `tutti_NAME` that knows the layers above it, plus one test program `NAME_test`
# from the x_test.cpp files beside the code. The objects of all layers make up libtutti (cmake/package.cmake).
# The tests may use files of tests/support (SUPPORT) and the checks of src/verify (TEST_LIBRARIES). LABELS and COST are theirs
# (cmake/tests.cmake): `threads` has them run under the sanitizers, too. KNOWS names the lowest layer that a layer uses, where
# that is not the one above it.
#
# With TUTTI_UNITY, eight files of a layer (TUTTI_UNITY_FILES) are compiled as one, which takes half the time and less: most of it
# goes into headers. The sanitizers' builds, which nobody edits in, take a layer at a time. Names in the anonymous namespaces of
# a layer's files therefore differ. The preset debug compiles each file by itself, which shows an include that is missing.
# tutti_unite(TARGET) does the same for libraries that are no layers.

# TUTTI_LAYERS: top to bottom. TUTTI_LAYERS_APART: those of them that are not part of libtutti; TUTTI_PROGRAM_LAYERS: the programs
# among these.
set(layers_file ${CMAKE_CURRENT_LIST_DIR}/layers.txt)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${layers_file})
file(STRINGS ${layers_file} layer_lines REGEX "^[a-z]")
set(TUTTI_LAYERS "")
set(TUTTI_LAYERS_APART "")
set(TUTTI_PROGRAM_LAYERS "")
foreach(line IN LISTS layer_lines)
  string(REGEX MATCH "^[a-z_]+" layer "${line}")
  list(APPEND TUTTI_LAYERS ${layer})
  if(line MATCHES " (program|checks)$")
    list(APPEND TUTTI_LAYERS_APART ${layer})
  endif()
  if(line MATCHES " program$")
    list(APPEND TUTTI_PROGRAM_LAYERS ${layer})
  endif()
endforeach()

set_property(GLOBAL PROPERTY TUTTI_LAYERS_SO_FAR "")
set_property(GLOBAL PROPERTY TUTTI_LIBRARY_LAYERS "")   # the targets whose objects make up libtutti
set_property(GLOBAL PROPERTY TUTTI_LIBRARY_LINKS "")    # and what they link

function(tutti_unite target)
  if(TUTTI_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${TUTTI_UNITY_FILES} UNITY_BUILD_RELOCATABLE ON)
  endif()
endfunction()

function(tutti_layer name)
  cmake_parse_arguments(LAYER "" "COST;KNOWS" "SOURCES;TESTS;SUPPORT;TEST_LIBRARIES;LIBRARIES;FUZZERS;LABELS" ${ARGN})
  if(LAYER_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "tutti_layer(${name}): unknown arguments ${LAYER_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT name IN_LIST TUTTI_LAYERS)
    message(FATAL_ERROR "tutti_layer(${name}): not in the list of layers, cmake/layers.txt")
  endif()
  get_property(so_far GLOBAL PROPERTY TUTTI_LAYERS_SO_FAR)
  set(above ${so_far})
  if(LAYER_KNOWS)
    set(above tutti_${LAYER_KNOWS})  # which brings those above it
  endif()

  if(LAYER_SOURCES)
    add_library(tutti_${name} STATIC ${LAYER_SOURCES})
    target_link_libraries(tutti_${name} PUBLIC tutti_options ${above} ${LAYER_LIBRARIES})
    if(NOT name STREQUAL "kernel")  # its files include themselves once per instruction set
      tutti_unite(tutti_${name})
    endif()
  else()
    add_library(tutti_${name} INTERFACE)
    target_link_libraries(tutti_${name} INTERFACE tutti_options ${above} ${LAYER_LIBRARIES})
  endif()
  if(TUTTI_FUZZ AND LAYER_FUZZERS AND LAYER_SOURCES)
    # A fuzzer that sees only its own file explores nothing. The layers without fuzzers go without: their tests would be a
    # quarter slower.
    target_compile_options(tutti_${name} PRIVATE -fsanitize=fuzzer-no-link -O1)
  endif()
  if(name IN_LIST TUTTI_PROGRAM_LAYERS AND NOT name STREQUAL "bench" AND LAYER_SOURCES)
    target_compile_options(tutti_${name} PRIVATE $<$<CONFIG:Release>:-O1>)  # nobody waits for these, but for the compiler
  endif()
  set_property(GLOBAL PROPERTY TUTTI_LAYERS_SO_FAR tutti_${name} ${so_far})
  if(NOT name IN_LIST TUTTI_LAYERS_APART)
    if(LAYER_SOURCES)
      set_property(GLOBAL APPEND PROPERTY TUTTI_LIBRARY_LAYERS tutti_${name})
    endif()
    set_property(GLOBAL APPEND PROPERTY TUTTI_LIBRARY_LINKS ${LAYER_LIBRARIES})
  endif()

  if(LAYER_TESTS)
    list(TRANSFORM LAYER_SUPPORT PREPEND ${PROJECT_SOURCE_DIR}/tests/support/)
    tutti_test(${name}_test PREFIX ${name} SOURCES ${LAYER_TESTS} ${LAYER_SUPPORT} LIBRARIES tutti_${name} ${LAYER_TEST_LIBRARIES}
               LABELS ${LAYER_LABELS} COST ${LAYER_COST})
    if(LAYER_SUPPORT AND TARGET ${name}_test)
      target_include_directories(${name}_test PRIVATE ${PROJECT_SOURCE_DIR})
    endif()
  endif()
  foreach(fuzzer IN LISTS LAYER_FUZZERS)
    tutti_fuzzer(${fuzzer} LAYER ${name})
  endforeach()
  # What `./dev test NAME` builds.
  add_custom_target(check_${name})
  foreach(program ${name}_test ${LAYER_FUZZERS})
    get_filename_component(program ${program} NAME_WE)
    if(TARGET ${program})
      add_dependencies(check_${name} ${program})
    endif()
  endforeach()
endfunction()
