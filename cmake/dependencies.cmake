# dependencies.cmake: the libraries Tutti stands on, found once, here.
# SPDX-License-Identifier: Apache-2.0
#
# A layer names the targets it uses in tutti_layer(LIBRARIES ...). All of them come from CMAKE_PREFIX_PATH if it says so.

# Targets found here or in a layer are seen everywhere, so that libtutti can link what its layers link.
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)
set(THREADS_PREFER_PTHREAD_FLAG ON)

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(hwy REQUIRED)
find_package(OpenSSL 3 REQUIRED)
find_package(Hwloc)
find_package(nlohmann_json QUIET)
find_package(CLI11 QUIET)
if(TUTTI_TESTS)
  find_package(GTest REQUIRED)
  find_package(Python3 COMPONENTS Interpreter)
endif()

target_link_libraries(tutti_options INTERFACE Threads::Threads fmt::fmt)
