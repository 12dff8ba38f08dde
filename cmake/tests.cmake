# tests.cmake: how a test program and a fuzzer are declared.
# SPDX-License-Identifier: Apache-2.0
#
#   tutti_test(NAME SOURCES x_test.cpp [LIBRARIES tutti_group] [PREFIX text] [LABELS threads …] [TIMEOUT 120] [WHOLE] [COST seconds])
#
# A GoogleTest program; each of its tests is one of ctest's, called "PREFIX: Suite.Test" (PREFIX is NAME without
# _test). WHOLE runs the program once instead, for fixtures that are expensive to set up, such as ranks that are
# processes; its tests are still counted one by one. Under the sanitizers, which take longer to start and to end than most
# tests, every program runs whole.
#
#   tutti_fuzzer(frame_fuzz.cpp LAYER wire)
#
# With TUTTI_FUZZ a libFuzzer program. Otherwise the same file is built with a main that replays the corpus beside it
# (corpus/frame_fuzz/) and some seeded noise, as a test: a fuzzer that no longer compiles is noticed everywhere.
#
# Labels choose a stage of ./dev test: `threads` (ranks as threads: also under the sanitizers), `launchers`, `hosts`,
# `docs`, `install`, `soak`, `gpu`. The target label_NAME builds the programs with that label.

if(TUTTI_TESTS)
  enable_testing()
  include(GoogleTest)
  set(TUTTI_GTEST_REPORTS ${PROJECT_BINARY_DIR}/gtest)  # one report per WHOLE program, for the count at the end
endif()

function(tutti_add_labels target)
  foreach(label IN LISTS ARGN)
    if(NOT TARGET label_${label})
      add_custom_target(label_${label})
    endif()
    add_dependencies(label_${label} ${target})
  endforeach()
endfunction()

# With TUTTI_UNITY, up to TUTTI_UNITY_FILES files of tests are compiled as one, which takes half the time. tools/join_tests.py keeps
# their names apart. What else a program is made of is left as it is.
function(tutti_join_tests out name)
  set(tests ${ARGN})
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  list(LENGTH tests count)
  if(NOT TUTTI_UNITY OR count LESS 2)
    set(${out} ${ARGN} PARENT_SCOPE)
    return()
  endif()
  set(sources ${ARGN})
  list(REMOVE_ITEM sources ${tests})
  list(TRANSFORM tests PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  math(EXPR parts "(${count} + ${TUTTI_UNITY_FILES} - 1) / ${TUTTI_UNITY_FILES}")
  foreach(part RANGE 1 ${parts})  # of about the same size
    math(EXPR begin "${count} * (${part} - 1) / ${parts}")
    math(EXPR length "${count} * ${part} / ${parts} - ${begin}")
    list(SUBLIST tests ${begin} ${length} files)
    list(JOIN files "\n" listed)
    set(joined ${CMAKE_CURRENT_BINARY_DIR}/${name}_${part})
    file(CONFIGURE OUTPUT ${joined}.txt CONTENT "${listed}\n" @ONLY)
    add_custom_command(OUTPUT ${joined}.cpp DEPENDS ${files} ${joined}.txt ${PROJECT_SOURCE_DIR}/tools/join_tests.py
                       COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/join_tests.py ${joined}.txt ${joined}.cpp
                       WORKING_DIRECTORY ${CMAKE_BINARY_DIR} VERBATIM)
    list(APPEND sources ${joined}.cpp)
  endforeach()
  set(${out} ${sources} PARENT_SCOPE)
endfunction()

function(tutti_test name)
  if(NOT TUTTI_TESTS)
    return()
  endif()
  cmake_parse_arguments(TEST "WHOLE" "PREFIX;TIMEOUT;COST" "SOURCES;LIBRARIES;LABELS" ${ARGN})
  if(NOT TEST_PREFIX)
    string(REGEX REPLACE "_test$" "" TEST_PREFIX ${name})
  endif()
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 120)
  endif()

  tutti_join_tests(sources ${name} ${TEST_SOURCES})
  add_executable(${name} ${sources})
  target_compile_options(${name} PRIVATE "SHELL:-iquote ${CMAKE_CURRENT_SOURCE_DIR}")  # joined sources lie elsewhere
  target_link_libraries(${name} PRIVATE tutti_options ${TEST_LIBRARIES} GTest::gtest GTest::gmock GTest::gtest_main)
  target_compile_options(${name} PRIVATE ${TUTTI_TEST_OPTIMISATION})
  tutti_precompile_test(${name})
  tutti_add_labels(${name} ${TEST_LABELS})
  if(TUTTI_SANITIZE AND NOT TEST_WHOLE)
    set(TEST_WHOLE ON)
    set(TEST_TIMEOUT 900)
    string(REGEX REPLACE "_test$" "" TEST_PREFIX ${name})  # several programs may have one prefix
  endif()
  if(TEST_WHOLE)
    add_test(NAME ${TEST_PREFIX} COMMAND ${name} --gtest_output=xml:${TUTTI_GTEST_REPORTS}/${TEST_PREFIX}.xml)
    set_tests_properties(${TEST_PREFIX} PROPERTIES TIMEOUT ${TEST_TIMEOUT} LABELS "${TEST_LABELS}")
    if(TEST_COST)  # the longest first: no core is idle in the end
      set_tests_properties(${TEST_PREFIX} PROPERTIES COST ${TEST_COST})
    endif()
  else()
    # Before the test run, not after the build: there the thread sanitizer's programs need a fixed address space.
    gtest_discover_tests(${name} TEST_PREFIX "${TEST_PREFIX}: " DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                         PROPERTIES TIMEOUT ${TEST_TIMEOUT})
    # gtest_discover_tests takes one label only, so they are set afterwards, on the tests it found.
    if(TEST_LABELS)
      file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/${name}_labels.cmake
           "if(${name}_TESTS)\n  set_tests_properties(\${${name}_TESTS} PROPERTIES LABELS \"${TEST_LABELS}\")\nendif()\n")
      set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${CMAKE_CURRENT_BINARY_DIR}/${name}_labels.cmake)
    endif()
  endif()
endfunction()

function(tutti_fuzzer source)
  cmake_parse_arguments(FUZZER "" "LAYER" "" ${ARGN})
  get_filename_component(name ${source} NAME_WE)
  if(TUTTI_FUZZ)
    add_executable(${name} ${source})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    tutti_add_labels(${name} fuzz)
    set_property(GLOBAL APPEND_STRING PROPERTY TUTTI_FUZZERS
                 "$<TARGET_FILE:${name}> ${CMAKE_CURRENT_SOURCE_DIR}/corpus/${name}\n")
  elseif(TUTTI_TESTS)
    add_executable(${name} ${source} ${PROJECT_SOURCE_DIR}/tools/replay_fuzzer.cpp)
    add_test(NAME "${FUZZER_LAYER}: ${name} survives its corpus and noise"
             COMMAND ${name} ${CMAKE_CURRENT_SOURCE_DIR}/corpus/${name})
    set_tests_properties("${FUZZER_LAYER}: ${name} survives its corpus and noise" PROPERTIES TIMEOUT 120)
  else()
    return()
  endif()
  target_link_libraries(${name} PRIVATE tutti_${FUZZER_LAYER})
endfunction()

# fuzzers.txt: one line per fuzzer, program and corpus, for ./dev test fuzz.
function(tutti_write_fuzzer_list)
  get_property(fuzzers GLOBAL PROPERTY TUTTI_FUZZERS)
  file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/fuzzers.txt CONTENT "${fuzzers}")
endfunction()
if(TUTTI_FUZZ)
  cmake_language(DEFER DIRECTORY ${PROJECT_SOURCE_DIR} CALL tutti_write_fuzzer_list)
endif()
