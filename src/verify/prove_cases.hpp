// prove_cases.hpp: the grid of specs that prove_plans works through.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "plan/catalog.hpp"
#include "plan/plan.hpp"

namespace tutti {

/// How much of the grid to visit.
struct Grid {
  int size_max = 33;
  int sample = 1;          // visit every n-th case
  std::uint64_t seed = 1;  // which ones
};

/// The specs of all ranks of one collective.
using Case = std::vector<Spec>;

/// Calls `visit` for every case of the grid for one row of the catalogue and one size.
void for_each_case(const CatalogRow& row, int size, const Grid& grid, const std::function<void(const Case&)>& visit);

}  // namespace tutti
