# layers.cmake: how a folder of src/ becomes part of the library.
#
#   tutti_layer(NAME SOURCES a.cpp b.cpp TESTS a_test.cpp LIBRARIES OpenSSL::Crypto FUZZERS frame_fuzz.cpp)
#
# Each layer is an object library `tutti_NAME` that knows the layers above it, plus one test program `NAME_test`
# from the x_test.cpp files beside the code. The objects of all layers make up libtutti.

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
if(TUTTI_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
  enable_testing()
endif()

add_library(tutti_options INTERFACE)
target_include_directories(tutti_options INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
target_compile_options(tutti_options INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wno-sign-conversion -Wshadow -Wnon-virtual-dtor)
target_link_libraries(tutti_options INTERFACE Threads::Threads fmt::fmt)
if(TUTTI_SANITIZE)
  target_compile_options(tutti_options INTERFACE -fsanitize=${TUTTI_SANITIZE} -fno-omit-frame-pointer -g)
  target_link_options(tutti_options INTERFACE -fsanitize=${TUTTI_SANITIZE})
endif()

set_property(GLOBAL PROPERTY TUTTI_LAYERS_SO_FAR "")

function(tutti_layer name)
  cmake_parse_arguments(LAYER "" "" "SOURCES;TESTS;LIBRARIES;FUZZERS" ${ARGN})
  get_property(above GLOBAL PROPERTY TUTTI_LAYERS_SO_FAR)

  add_library(tutti_${name} STATIC ${LAYER_SOURCES})
  target_link_libraries(tutti_${name} PUBLIC tutti_options ${above} ${LAYER_LIBRARIES})
  set_property(GLOBAL PROPERTY TUTTI_LAYERS_SO_FAR tutti_${name} ${above})

  if(TUTTI_TESTS AND LAYER_TESTS)
    add_executable(${name}_test ${LAYER_TESTS})
    target_link_libraries(${name}_test PRIVATE tutti_${name} GTest::gtest GTest::gmock GTest::gtest_main)
    gtest_discover_tests(${name}_test TEST_PREFIX "${name}: " PROPERTIES TIMEOUT 120 DISCOVERY_TIMEOUT 60)
  endif()
  if(TUTTI_FUZZ)
    foreach(fuzzer IN LISTS LAYER_FUZZERS)
      get_filename_component(target ${fuzzer} NAME_WE)
      add_executable(${target} ${fuzzer})
      target_compile_options(${target} PRIVATE -fsanitize=fuzzer)
      target_link_options(${target} PRIVATE -fsanitize=fuzzer)
      target_link_libraries(${target} PRIVATE tutti_${name})
    endforeach()
  endif()
endfunction()
