// model.cpp: random programs of messages, and what may be received.
// SPDX-License-Identifier: Apache-2.0
#include "model.hpp"

#include <algorithm>
#include <array>

#include "base/hash.hpp"

namespace tutti::message_programs {

std::int32_t element_of(std::uint64_t number, std::int64_t place) {
  return static_cast<std::int32_t>(Hash(number).add(static_cast<std::uint64_t>(place)).value());
}

Program draw_program(std::uint64_t seed) {
  // From nothing over what travels at once to what is announced.
  constexpr std::array<std::int64_t, 9> counts{0, 1, 2, 7, 100, 3'000, 20'000, 70'000, 300'000};
  Random random(seed);
  Program program{.seed = seed, .size = 2 + static_cast<int>(random.below(7)), .rounds = {}};
  const auto size = static_cast<std::uint64_t>(program.size);
  const std::uint64_t rounds = 1 + random.below(4), tags = 1 + random.below(4);
  std::uint64_t number = 0;
  for (std::uint64_t i = 0; i < rounds; ++i) {
    std::vector<Sent> round;
    for (std::uint64_t left = 1 + random.below(6 * size); left > 0; --left) {
      round.push_back({.from = static_cast<int>(random.below(size)),
                       .to = static_cast<int>(random.below(size)),
                       .tag = static_cast<std::uint32_t>(random.below(tags)),
                       .count = counts[random.below(counts.size())],
                       .number = Hash(seed).add(++number).value()});
    }
    program.rounds.push_back(std::move(round));
  }
  return program;
}

Awaited::Awaited(const std::vector<Sent>& round, int rank) {
  std::ranges::copy_if(round, std::back_inserter(left_), [&](const Sent& each) { return each.to == rank; });
}

const Sent* Awaited::next(int from, std::optional<std::uint32_t> tag) const {
  const auto found =
      std::ranges::find_if(left_, [&](const Sent& each) { return each.from == from && (!tag || each.tag == *tag); });
  return found == left_.end() ? nullptr : &*found;
}

void Awaited::take(const Sent& message) {
  std::erase_if(left_, [number = message.number](const Sent& each) { return each.number == number; });
}

}  // namespace tutti::message_programs
