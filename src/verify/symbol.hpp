// symbol.hpp: what one element holds while plans are proved: not a number, but where it came from.
// SPDX-License-Identifier: Apache-2.0
//
// A symbol carries two 64-bit hashes. `expression` depends on every operand and on the order of the reductions: two elements
// with the same expression have the same bits, whatever the numbers. `contributions` is a sum over the inputs that went
// in, so it does not depend on the order, but a contribution that is missing, doubled or from a wrong place changes it.
// `first` and `last` are the ranks that went in, as long as they went in one after the other.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

namespace tutti {

struct Symbol {
  enum class State : std::uint8_t {
    undefined,  // nobody wrote it
    value,      // an input, or a reduction of inputs
    finished,   // a value after the reduction's last touch
    constant,   // zero or the identity
    spoiled,    // reduced from something that must not be reduced, or finished twice
  };
  std::uint64_t expression = 0;
  std::uint64_t contributions = 0;
  State state = State::undefined;
  std::int16_t first = -1, last = -1;  // −1: not in the order of ranks
  friend bool operator==(const Symbol&, const Symbol&) = default;
};

constexpr std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = a * 0x9e3779b97f4a7c15ULL + (b ^ (b >> 31)) * 0xd6e8feb86659fd93ULL + 0x2545f4914f6cdd1dULL;
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93ULL;
  x = (x ^ (x >> 29)) * 0x9e3779b97f4a7c15ULL;
  return x ^ (x >> 32);
}

/// Element `offset` of the input of `rank`.
constexpr Symbol input_symbol(int rank, std::int64_t offset) {
  const std::uint64_t id = mix(static_cast<std::uint64_t>(rank) + 1, static_cast<std::uint64_t>(offset));
  return {.expression = mix(id, 11),
          .contributions = mix(id, 12),
          .state = Symbol::State::value,
          .first = static_cast<std::int16_t>(rank),
          .last = static_cast<std::int16_t>(rank)};
}
constexpr Symbol zero_symbol() { return {.expression = 1, .state = Symbol::State::constant}; }
constexpr Symbol identity_symbol() { return {.expression = 2, .state = Symbol::State::constant}; }

constexpr Symbol reduced(const Symbol& a, const Symbol& b) {
  const bool sound = a.state == Symbol::State::value && b.state == Symbol::State::value;
  const bool in_order = a.first >= 0 && b.first >= 0 && a.last + 1 == b.first;
  return {.expression = mix(a.expression, b.expression),
          .contributions = a.contributions + b.contributions,
          .state = sound ? Symbol::State::value : Symbol::State::spoiled,
          .first = in_order ? a.first : std::int16_t{-1},
          .last = in_order ? b.last : std::int16_t{-1}};
}
constexpr Symbol finished(const Symbol& a) {
  return {.expression = mix(a.expression, 13),
          .contributions = a.contributions,
          .state = a.state == Symbol::State::value ? Symbol::State::finished : Symbol::State::spoiled,
          .first = a.first,
          .last = a.last};
}

/// Expressions in words, kept only while a failure is being explained.
using SymbolNames = std::unordered_map<std::uint64_t, std::string>;

}  // namespace tutti
