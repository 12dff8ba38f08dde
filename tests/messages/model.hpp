// model.hpp: what a rank of a random program may receive, and whether what it received is right.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/random.hpp"

namespace tutti::message_programs {

/// One message of a round.
struct Sent {
  int from = 0, to = 0;
  std::uint32_t tag = 0;
  std::int64_t count = 0;
  std::uint64_t number = 0;  // of the program; its elements are made of it
};
/// The element at that place of a message.
std::int32_t element_of(std::uint64_t number, std::int64_t place);

/// The rounds of a program: in each, every rank sends its messages, in order, and receives all that are for it.
struct Program {
  std::uint64_t seed = 0;
  int size = 2;
  std::vector<std::vector<Sent>> rounds;
};
Program draw_program(std::uint64_t seed);

/// What one rank has yet to receive in a round. Messages of one sender that a receive matches come in the order in which they were sent.
class Awaited {
 public:
  Awaited(const std::vector<Sent>& round, int rank);
  [[nodiscard]] bool empty() const { return left_.empty(); }
  [[nodiscard]] const Sent& any(Random& random) const { return left_[random.below(left_.size())]; }
  /// The one that a receive from this sender gets; no tag: of any.
  [[nodiscard]] const Sent* next(int from, std::optional<std::uint32_t> tag) const;
  void take(const Sent& message);

 private:
  std::vector<Sent> left_;
};

}  // namespace tutti::message_programs
