// backend_names.hpp: what a job may ask for with -B, TUTTI_BACKEND or init(backend=…).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace tutti {

inline constexpr std::array<std::string_view, 5> backend_names{"auto", "native", "shm", "ucx", "mpi"};

constexpr bool is_backend_name(std::string_view name) {
  return std::ranges::find(backend_names, name) != backend_names.end();
}

}  // namespace tutti
