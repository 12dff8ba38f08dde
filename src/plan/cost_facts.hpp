// cost_facts.hpp: rounds, messages and bytes of each algorithm, in closed form.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "plan/layout.hpp"
#include "plan/plan.hpp"

namespace tutti {

struct Facts {
  std::int64_t rounds = 0, messages = 0, sent = 0, received = 0, reduced = 0;
  std::int64_t fill = 0;       // bytes on the way before every rank is busy
  std::int64_t segments = 1;   // with several, reducing overlaps with receiving
  bool has_incast = false;     // several ranks send to one at once
  bool adjacent_only = false;  // only adjacent ranks communicate: one stream leaves a node
};

// The numbers that formulas are made of.
struct Numbers {
  std::int64_t p, n, block, half_depth, depth, power;
  bool folded;
  std::int64_t pieces, piece;  // segments of the unit that is cut, and their bytes
  Numbers(std::int64_t ranks, std::int64_t bytes, std::int64_t cut_unit, std::int64_t segment)
      : p(ranks),
        n(bytes),
        block(bytes / ranks),
        half_depth(0),
        depth(ceil_log2(static_cast<int>(ranks))),
        power(floor_power_of_two(static_cast<int>(ranks))),
        folded(power != p),
        pieces(segment > 0 && cut_unit > 0 ? (cut_unit + segment - 1) / segment : 1),
        piece(segment > 0 ? std::min(segment, cut_unit) : cut_unit) {
    half_depth = folded ? depth - 1 : depth;  // ⌊log₂ p⌋
  }
  [[nodiscard]] std::int64_t others() const { return block * (p - 1); }
  // Blocks of the largest subtree below the root of a binomial tree.
  [[nodiscard]] std::int64_t subtree() const {
    const std::int64_t top = std::int64_t{1} << (depth - 1);
    return std::max(p - top, top / 2);
  }
  [[nodiscard]] std::int64_t tree_height() const { return 1 + ceil_log2(floor_power_of_two(static_cast<int>(p - 1))); }
  // Ranks behind positions [0, 1), [0, 2), [0, 4), …, added up (fold.hpp).
  [[nodiscard]] std::int64_t ranks_behind() const {
    std::int64_t sum = 0;
    for (std::int64_t bit = 1; bit < power; bit *= 2) sum += bit + std::min(bit, p - power);
    return sum;
  }
};

Facts facts_of(Verb verb, Algorithm algorithm, const Numbers& x);

}  // namespace tutti
