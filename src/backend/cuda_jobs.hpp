// cuda_jobs.hpp: what a GPU has to do in a call, from who has which arrays: pure.
// SPDX-License-Identifier: Apache-2.0
//
// One rank for each GPU, its leader, has the GPU do the work for all ranks on it: kernels of different processes do not run side by
// side, so the others could only wait for their turn. Every source is read once, and its result is written to all who get it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cuda/kernels.hpp"
#include "engine/executor.hpp"

namespace tutti {

/// Contiguous arrays by rank; null where a rank has none.
struct GpuArrays {
  std::vector<std::byte*> inputs, outputs;
};

struct GpuJob {
  std::vector<std::byte*> sources, destinations;  // null destinations are left out
  std::int64_t count = 0;                         // elements
};

/// The jobs whose results belong to the ranks that `is_mine` names. In any order: no job reads what another one writes.
std::vector<GpuJob> gpu_jobs(const ExecutionSpec& what, const GpuArrays& arrays, const std::vector<bool>& is_mine);

/// Whether jobs of one call would read what others write if the output were the input.
bool needs_separate_output(Verb verb);

/// The kernel that does the jobs of a call, and how they are counted for it.
struct GpuKernel {
  std::string name;
  std::int64_t per_element = 1;  // what it counts, in an element of the call: bytes, or parts of complex numbers
  int mode = cuda::Batch::everything;
  bool moves = false;
};
GpuKernel gpu_kernel(const ExecutionSpec& what);

/// As few launches as possible.
std::vector<cuda::Batch> gpu_batches(const ExecutionSpec& what, const GpuKernel& kernel,
                                     const std::vector<GpuJob>& jobs);

}  // namespace tutti
