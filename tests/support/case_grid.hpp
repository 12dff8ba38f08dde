// case_grid.hpp: which cases are run: all small ones, and a random sample of the others.
// SPDX-License-Identifier: Apache-2.0
//
// TUTTI_SEED=n draws the same lot again; TUTTI_SOAK=1 runs everything.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "contract_case.hpp"
#include "group_kinds.hpp"

namespace tutti::contract {

struct GroupCase {
  GroupKind group = GroupKind::world;
  Case call{};
};

/// Of this run: from TUTTI_SEED, or drawn once; printed when it is first asked for.
std::uint64_t seed_of_run();
bool is_soak();
/// `count` as it is, fewer under a sanitizer, many more in a soak.
int lot(int count);

/// All of them; under a sanitizer a share, by the seed.
std::vector<GroupCase> lot(std::vector<GroupCase> cases, std::uint64_t seed);

/// Every verb × every dtype × every reduction that applies × in place or not × these lengths: contiguous, even, in the world.
std::vector<GroupCase> every_call(std::span<const std::int64_t> lengths, std::uint64_t seed);
/// `count` cases by lot from everything that makes sense: shapes, memory, sizes, roots, groups.
std::vector<GroupCase> some_calls(int count, std::span<const std::int64_t> lengths, std::uint64_t seed);

/// Runs the cases in order on this rank, those of groups it is in. Tells `fail` of the first few that went wrong.
void run_calls(Group& world, std::span<const GroupCase> cases, const std::function<void(const std::string&)>& fail);

}  // namespace tutti::contract
