# FindHwloc.cmake: hwloc, which tells sockets, caches and cores, as the target Hwloc::Hwloc.
# SPDX-License-Identifier: Apache-2.0
#
# Installed beside tuttiConfig.cmake, because a static libtutti needs it in the project that uses it.

find_path(Hwloc_INCLUDE_DIR hwloc.h)
find_library(Hwloc_LIBRARY hwloc)
mark_as_advanced(Hwloc_INCLUDE_DIR Hwloc_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Hwloc REQUIRED_VARS Hwloc_LIBRARY Hwloc_INCLUDE_DIR)

if(Hwloc_FOUND AND NOT TARGET Hwloc::Hwloc)
  add_library(Hwloc::Hwloc UNKNOWN IMPORTED GLOBAL)
  set_target_properties(Hwloc::Hwloc PROPERTIES IMPORTED_LOCATION "${Hwloc_LIBRARY}"
                                                INTERFACE_INCLUDE_DIRECTORIES "${Hwloc_INCLUDE_DIR}")
endif()
