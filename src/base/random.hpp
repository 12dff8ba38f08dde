// random.hpp: seeded random numbers (xoshiro256**), passed in wherever chance is wanted, never global.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "base/hash.hpp"

namespace tutti {

/// The same seed gives the same numbers on every machine. Also a UniformRandomBitGenerator for <algorithm>. Not for
/// secrets.
class Random {
 public:
  using result_type = std::uint64_t;

  constexpr explicit Random(std::uint64_t seed) {
    for (std::uint64_t& word : state_) word = scramble(seed += 0x9e3779b97f4a7c15u);
  }

  static constexpr std::uint64_t min() { return 0; }
  static constexpr std::uint64_t max() { return std::numeric_limits<std::uint64_t>::max(); }
  constexpr std::uint64_t operator()() { return next(); }

  constexpr std::uint64_t next() {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  /// 0 ≤ result < bound, each equally likely; 0 for a bound of 0.
  constexpr std::uint64_t below(std::uint64_t bound) {
    if (bound == 0) return 0;
    const std::uint64_t leftover = (max() % bound + 1) % bound;  // the incomplete last round, which is drawn again
    std::uint64_t draw = next();
    while (draw > max() - leftover) draw = next();
    return draw % bound;
  }
  /// lowest ≤ result ≤ highest.
  constexpr std::int64_t between(std::int64_t lowest, std::int64_t highest) {
    const std::uint64_t width = std::uint64_t(highest) - std::uint64_t(lowest) + 1;
    const std::uint64_t offset = width == 0 ? next() : below(width);
    return static_cast<std::int64_t>(std::uint64_t(lowest) + offset);
  }
  /// 0 ≤ result < 1.
  constexpr double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  constexpr bool chance(double probability) { return unit() < probability; }
  /// An independent generator, so that one consumer's draws do not shift another's.
  constexpr Random fork() { return Random(next()); }

 private:
  std::uint64_t state_[4] = {};
};

}  // namespace tutti
