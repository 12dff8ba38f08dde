# plugins.cmake: a plug-in for each binary interface of MPI that this machine has the header of.
# SPDX-License-Identifier: Apache-2.0
#
# What a compiler wrapper says is used for its include folders alone: `mpicc -show` prints the command without running it, and knows
# the folders where a header is not in one of the usual places. TUTTI_MPI_OPENMPI_INCLUDE and TUTTI_MPI_MPICH_INCLUDE overrule it. The standard
# interface of MPI-5 has a header of its own, mpi_abi.h, which `./dev` installs with Intel MPI into build/impi.

set(TUTTI_MPI_PLUGIN_FOLDER ${PROJECT_BINARY_DIR}/lib/tutti)
target_compile_definitions(tutti_mpi PRIVATE TUTTI_MPI_PLUGIN_FOLDER="${TUTTI_MPI_PLUGIN_FOLDER}")

function(tutti_mpi_include_folder key result)
  string(TOUPPER ${key} upper)
  set(TUTTI_MPI_${upper}_INCLUDE "" CACHE PATH "folder of ${key}'s mpi.h; empty: what its mpicc says")
  if(TUTTI_MPI_${upper}_INCLUDE)
    set(${result} ${TUTTI_MPI_${upper}_INCLUDE} PARENT_SCOPE)
    return()
  endif()
  find_program(TUTTI_MPICC_${upper} NAMES mpicc.${key} mpicc)
  mark_as_advanced(TUTTI_MPICC_${upper})
  set(${result} "" PARENT_SCOPE)
  if(NOT TUTTI_MPICC_${upper})
    return()
  endif()
  execute_process(COMMAND ${TUTTI_MPICC_${upper}} -show OUTPUT_VARIABLE command ERROR_QUIET
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  string(REGEX MATCHALL "-I[^ ]+" folders "${command}")
  foreach(folder IN LISTS folders)
    string(SUBSTRING ${folder} 2 -1 folder)
    if(EXISTS ${folder}/mpi.h)
      # A plain `mpicc` may be another MPI's.
      file(STRINGS ${folder}/mpi.h mark REGEX "define (OMPI_MAJOR_VERSION|MPICH_VERSION)")
      if((key STREQUAL "openmpi" AND mark MATCHES "OMPI_") OR (key STREQUAL "mpich" AND mark MATCHES "MPICH_"))
        set(${result} ${folder} PARENT_SCOPE)
        return()
      endif()
    endif()
  endforeach()
endfunction()

function(tutti_mpi_plugin key name)
  if(key STREQUAL "abi")
    find_path(TUTTI_MPI_ABI_INCLUDE mpi_abi.h HINTS ${PROJECT_SOURCE_DIR}/build/impi/include)
    mark_as_advanced(TUTTI_MPI_ABI_INCLUDE)
    set(folder ${TUTTI_MPI_ABI_INCLUDE})
  else()
    tutti_mpi_include_folder(${key} folder)
  endif()
  if(NOT folder)
    message(STATUS "MPI: no plug-in for ${name}: its header was not found")
    return()
  endif()
  add_library(tutti_mpi_${key} MODULE plugin/plugin.cpp)
  target_link_libraries(tutti_mpi_${key} PRIVATE tutti_options)
  target_include_directories(tutti_mpi_${key} SYSTEM PRIVATE ${folder})
  target_compile_definitions(tutti_mpi_${key} PRIVATE TUTTI_MPI_INTERFACE="${name}" OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
  if(key STREQUAL "abi")
    target_compile_definitions(tutti_mpi_${key} PRIVATE TUTTI_MPI_STANDARD_INTERFACE)
  endif()
  set_target_properties(tutti_mpi_${key} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${TUTTI_MPI_PLUGIN_FOLDER}
                        CXX_VISIBILITY_PRESET hidden)
  # They wait for MPI's symbols until they are opened.
  target_link_options(tutti_mpi_${key} PRIVATE -Wl,--unresolved-symbols=ignore-all)
  add_dependencies(tutti_mpi tutti_mpi_${key})
  if(SKBUILD)
    install(TARGETS tutti_mpi_${key} LIBRARY DESTINATION ${SKBUILD_PLATLIB_DIR}/tutti)
  endif()
  install(TARGETS tutti_mpi_${key} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/tutti)
endfunction()

tutti_mpi_plugin(openmpi "Open MPI")
tutti_mpi_plugin(mpich "MPICH")
tutti_mpi_plugin(abi "the standard interface of MPI")
