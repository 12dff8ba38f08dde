// no_kernels.cpp: a build without nvcc has no kernels for GPUs.
// SPDX-License-Identifier: Apache-2.0
#include "cuda/kernels.hpp"

namespace tutti::cuda {

const void* kernel_image() { return nullptr; }

}  // namespace tutti::cuda
