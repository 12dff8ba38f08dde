// prove.hpp: are these plans right? Runs the plans of all ranks on symbolic values, without I/O.
// SPDX-License-Identifier: Apache-2.0
//
// What a proof shows, for one spec and all of its ranks:
//  1. each element of each output is made of the right contributions, each exactly once, finished once if that was asked
//     for, and nothing else in the callers' memory has changed; for all_reduce, all ranks reduced in the same order; in the order
//     of ranks where the spec asks for it;
//  2. every send has its receive, of the same count, and nothing waits for ever, also if sends are synchronous;
//  3. no schedule can change the result: steps that touch the same element are ordered by dependencies;
//  4. scratch stays within what the algorithm declares in the catalogue.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plan/plan.hpp"

namespace tutti {

struct Proof {
  std::string failure;  // the first thing that is wrong: rank, step, element, expected, got; empty when all is well
  std::int64_t steps = 0;
  std::int64_t messages = 0;
  [[nodiscard]] bool holds() const { return failure.empty(); }
};

class Prover {
 public:
  Prover();
  ~Prover();
  /// `plans[r]` is the plan of rank r. With `seed` ≠ 0 other schedules are run too: the steps' order reversed and random,
  /// sends synchronous and eager. (Point 3 says that they cannot differ; this tests the prover itself.)
  Proof prove(std::span<const Plan> plans, std::uint64_t seed = 0);

 private:
  struct Memory;
  std::unique_ptr<Memory> memory_;  // kept between proofs
};

/// The plans of all ranks, from a spec that is the same on all but for the rank.
std::vector<Plan> make_plans(Spec spec);

}  // namespace tutti
