// backend_names.hpp: what a job may ask for with -B, TUTTI_BACKEND or init(backend=…).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace tutti {

inline constexpr std::array<std::string_view, 7> backend_names{"auto", "native", "shm", "ucx", "mpi", "nccl", "cuda"};

/// Those for arrays on GPUs. Arrays of the CPU go by the others, as they do where none is asked for.
constexpr bool is_gpu_backend(std::string_view name) { return name == "nccl" || name == "cuda"; }

constexpr bool is_backend_name(std::string_view name) {
  return std::ranges::find(backend_names, name) != backend_names.end();
}

}  // namespace tutti
