# kernels.cmake: kernels.cu, compiled by nvcc into an image that is part of the library; no_kernels.cpp where there is no nvcc.
# SPDX-License-Identifier: Apache-2.0
#
# Machine code for the GPUs that are in use, and PTX for all others, which the driver compiles when it loads the image.

option(TUTTI_CUDA "Compile the kernels for GPUs, if nvcc is found" ON)
set(TUTTI_CUDA_ARCHITECTURES "90" CACHE STRING "GPUs to compile machine code for: their compute capabilities")
set(TUTTI_CUDA_OLDEST "80" CACHE STRING "The oldest GPU that can run the kernels, which the driver compiles for it")
find_program(TUTTI_NVCC nvcc HINTS /usr/local/cuda/bin ENV CUDA_HOME PATH_SUFFIXES bin)
mark_as_advanced(TUTTI_NVCC)
set(TUTTI_CUDA_KERNELS no_kernels.cpp)
if(NOT TUTTI_CUDA OR NOT TUTTI_NVCC)
  message(STATUS "CUDA: no kernels: nvcc was not found")
  return()
endif()

set(targets "")
foreach(architecture IN LISTS TUTTI_CUDA_ARCHITECTURES)
  list(APPEND targets -gencode arch=compute_${architecture},code=sm_${architecture})
endforeach()
list(APPEND targets -gencode arch=compute_${TUTTI_CUDA_OLDEST},code=compute_${TUTTI_CUDA_OLDEST})
set(image ${CMAKE_CURRENT_BINARY_DIR}/kernels.fatbin)
set(source ${CMAKE_CURRENT_BINARY_DIR}/kernel_image.cpp)
add_custom_command(OUTPUT ${image}
  COMMAND ${TUTTI_NVCC} -fatbin -std=c++20 --expt-relaxed-constexpr -fmad=false -O3 --threads 0 -I${PROJECT_SOURCE_DIR}/include
          -I${PROJECT_SOURCE_DIR}/src ${targets} -o ${image} ${CMAKE_CURRENT_SOURCE_DIR}/kernels.cu
  DEPENDS kernels.cu kernels.hpp ${PROJECT_SOURCE_DIR}/src/base/half.hpp
  COMMENT "Compiling the kernels for GPUs" VERBATIM)
add_custom_command(OUTPUT ${source}
  COMMAND ${CMAKE_COMMAND} -DIMAGE=${image} -DSOURCE=${source} -P ${CMAKE_CURRENT_SOURCE_DIR}/embed.cmake
  DEPENDS ${image} embed.cmake
  COMMENT "Embedding the kernels for GPUs" VERBATIM)
set(TUTTI_CUDA_KERNELS ${source})
