// hash.hpp: a 64-bit hash of a sequence of words and texts, the same on every machine.
// SPDX-License-Identifier: Apache-2.0
//
// For signatures and tables, to detect accidental differences; no protection against deliberate collisions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tutti {

/// A permutation of the 64-bit numbers in which every input bit moves about half of the output bits (splitmix64's).
constexpr std::uint64_t scramble(std::uint64_t word) {
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
  word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
  return word ^ (word >> 31);
}

/// Order matters: add(1), add(2) differs from add(2), add(1), and from add(1) alone.
class Hash {
 public:
  constexpr Hash() = default;
  constexpr explicit Hash(std::uint64_t seed) : state_(scramble(seed + step)) {}

  constexpr Hash& add(std::uint64_t word) {
    state_ = scramble(state_ ^ word) + step;
    return *this;
  }
  constexpr Hash& add(std::string_view text) {
    add(text.size());
    for (std::size_t begin = 0; begin < text.size(); begin += 8) {
      std::uint64_t word = 0;
      for (std::size_t i = begin; i < text.size() && i < begin + 8; ++i) {
        word |= std::uint64_t(static_cast<unsigned char>(text[i])) << (8 * (i - begin));
      }
      add(word);
    }
    return *this;
  }
  [[nodiscard]] constexpr std::uint64_t value() const { return scramble(state_); }

 private:
  static constexpr std::uint64_t step = 0x9e3779b97f4a7c15u;
  std::uint64_t state_ = step;
};

}  // namespace tutti
