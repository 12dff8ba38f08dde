// expectation.hpp: what the verbs mean, element by element: the other side of a proof.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/plan.hpp"
#include "verify/symbol.hpp"

namespace tutti {

/// What an element of an output has to be in the end.
struct Expected {
  enum class Kind : std::uint8_t { untouched, exactly, reduction } kind = Kind::untouched;
  Symbol symbol{};  // exactly: this one; reduction: these contributions in any order, in this state
};

class Expectation {
 public:
  /// Fills `elements` with what rank `rank`'s output must hold.
  void of(std::span<const Plan> plans, int rank, std::vector<Expected>& elements);

 private:
  Expected sum(int ranks, std::int64_t offset, Symbol::State state);
  std::vector<std::vector<std::uint64_t>> prefix_;  // [offset][r]: contributions of ranks below r
};

}  // namespace tutti
