// carrier_hot.hpp: what a call of a few bytes passes through, where the compiler sees all of it.
// SPDX-License-Identifier: Apache-2.0
//
// Such a call takes some 200 ns, half of which a cache line travels: the rest is worth being inlined. For circle.cpp.
#pragma once

#include <cstring>
#include <type_traits>

#include "kernel/kernel.hpp"
#include "shared/carrier.hpp"

namespace tutti::shared {

inline void copy_bytes(std::byte* to, const std::byte* from, std::int64_t bytes) {
  if (bytes == 8) {  // a call of the library's memcpy takes longer
    std::memcpy(to, from, 8);
  } else if (bytes > 0) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
}

// Those who wait look at the first line all the time. A store that reaches over both would have to get hold of both at once, and
// takes twice as long for eight who wait.
inline void fill_door(std::byte* payload, const std::byte* from, std::int64_t bytes) {
  if (bytes > first_line_bytes) {
    std::memcpy(payload + first_line_bytes, from + first_line_bytes,
                static_cast<std::size_t>(bytes - first_line_bytes));
    bytes = first_line_bytes;
  }
  copy_bytes(payload, from, bytes);
}

inline void Carrier::begin(const std::byte* input, std::byte* output, int door) {
  start_.input = input;
  start_.output = output;
  door_ = door;
  streams_ = streams(input, output);
  if (private_counts_ && input == output) start_.input = copy_of_sent(input);
  copies_own_ = own_count_ > 0 && start_.input + own_from_ * element_ != output + own_to_ * element_;
}

inline std::byte* Carrier::message_of(int rank, int slot) const {
  const Place& place = (*places_)[static_cast<std::size_t>(rank)];
  return move_.in_door ? place.seat->flags.doors[door_].greeting.payload : place.slots[slot];
}

inline std::int64_t Carrier::taken_from(int rank) const {
  return joins_ ? received_blocks_.count(rank) : output_count_;
}

inline std::byte* Carrier::landing_of(int rank) const {
  return start_.output + (joins_ ? received_blocks_.offset(rank) * element_ : 0);
}

// The input's part goes into the slot while, in place, its output has not been written yet: rounds are taken after they are left.
inline void Carrier::leave(std::int64_t round, int slot) {
  if (!move_.leaves) return;
  std::byte* const message = message_of(spec_->rank, slot);
  if (move_.in_blocks) return leave_blocks(round, message);
  const Part piece = part(message_count_, round);
  if (move_.answers) return leave_slices(piece, message);
  copy_bytes(message, start_.input + piece.begin * element_, piece.count * element_);
}

inline void Carrier::copy_out(std::byte* to, const std::byte* from, std::int64_t bytes) const {
  if (streams_) return copy_streaming(to, from, bytes);
  copy_bytes(to, from, bytes);
}

inline void Carrier::take(std::int64_t round, int slot, int peer) {
  if (move_.taking == Taking::nothing) return;
  if (move_.answers) return take_answer(round, slot, peer);
  if (move_.taking == Taking::copy) {
    const std::byte* message = message_of(peer, slot);
    const Part piece = part(taken_from(peer), round);
    if (move_.in_blocks) message += spec_->rank * move_.stride;
    copy_out(landing_of(peer) + piece.begin * element_, message, piece.count * element_);
  }
}

inline void Carrier::leave_in_door(std::byte* payload) const {
  if (!move_.leaves) return;
  if (move_.stride > 0) return leave_blocks(0, payload);
  fill_door(payload, start_.input + in_door_from_, in_door_bytes_);
}

inline void Carrier::take_from_door(const std::byte* payload, int peer) const {
  if (move_.taking != Taking::copy) return;
  copy_bytes(landing_of(peer), payload + spec_->rank * move_.stride, taken_from(peer) * element_);
}

inline void Carrier::finish(std::int64_t round, int slot) {
  if (copies_own_) copy_own(round);
  if (move_.answers) return;
  if (adds_floats_of_two_) {
    add_floats_of_two();
  } else if (move_.taking == Taking::reduce) {
    const Part piece = part(output_count_, round);
    const std::int64_t begin = move_.in_blocks ? sent_blocks_.offset(spec_->rank) + piece.begin : piece.begin;
    reduce_to(start_.output + piece.begin * element_, {begin, piece.count},
              move_.in_blocks ? spec_->rank * move_.stride : 0, slot);
  } else if (zeros_) {
    const Part piece = part(output_count_, round);
    kernel::fill_zero(start_.dtype, start_.output + piece.begin * element_, piece.count);
  }
}

/// As the kernels do it; but to choose among those takes longer than to add the few floats of a door. `add` gets the first operand's
/// floats, four at a time where there are so many, which takes one instruction, and where they begin.
template <class Add>
void add_floats(std::byte* to, const std::byte* first, std::int64_t count, Add add) {
  constexpr std::int64_t float_bytes = sizeof(float);
  const auto add_some = [&]<int lanes>(std::integral_constant<int, lanes>, std::int64_t at) {
    float sum[lanes];
    std::memcpy(sum, first + at, sizeof sum);
    add(sum, at);
    std::memcpy(to + at, sum, sizeof sum);
  };
  std::int64_t i = 0;
  for (; i + 4 <= count; i += 4) add_some(std::integral_constant<int, 4>(), i * float_bytes);
  for (; i + 2 <= count; i += 2) add_some(std::integral_constant<int, 2>(), i * float_bytes);
  for (; i < count; ++i) add_some(std::integral_constant<int, 1>(), i * float_bytes);
}

template <std::size_t lanes>
void add_to(float (&sum)[lanes], const std::byte* operand) {
  float next[lanes];
  std::memcpy(next, operand, sizeof next);
  for (std::size_t i = 0; i < lanes; ++i) sum[i] += next[i];
}

// Of two ranks it does not matter which comes first.
inline void Carrier::add_floats_of_two() {
  const std::byte* const theirs = message_of(1 - spec_->rank, 0);
  add_floats(start_.output, start_.input, output_count_,
             [theirs](auto& sum, std::int64_t at) { add_to(sum, theirs + at); });
}

}  // namespace tutti::shared
