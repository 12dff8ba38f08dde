// slot_copier_hot.hpp: what a call of a few bytes passes through, where the compiler sees all of it.
// SPDX-License-Identifier: Apache-2.0
//
// Such a call takes some 200 ns, half of which a cache line travels: the rest is worth being inlined. For intranode_group.cpp.
#pragma once

#include <cstring>
#include <type_traits>

#include "intranode/slot_copier.hpp"
#include "kernel/kernel.hpp"
#include "kernel/stream.hpp"

namespace tutti::intranode {

inline void copy_bytes(std::byte* to, const std::byte* from, std::int64_t bytes) {
  if (bytes == 8) {  // a call of the library's memcpy takes longer
    std::memcpy(to, from, 8);
  } else if (bytes > 0) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
}

inline void SlotCopier::begin(const std::byte* input, std::byte* output, int inline_slot) {
  start_.input = input;
  start_.output = output;
  inline_slot_ = inline_slot;
  streams_ = streams(input, output);
  if (private_counts_ && input == output) start_.input = copy_of_sent(input);
  copies_own_ = own_count_ > 0 && start_.input + own_from_ * element_ != output + own_to_ * element_;
  copies_own_early_ = copies_own_ && !move_.publishes && !move_.is_inline;
}

inline std::byte* SlotCopier::message_of(int rank, int slot) const {
  const Place& place = (*places_)[static_cast<std::size_t>(rank)];
  return move_.is_inline ? place.control_block->flags.inline_slots[inline_slot_].header.payload : place.slots[slot];
}

inline std::int64_t SlotCopier::consumed_from(int rank) const {
  return joins_ ? received_blocks_.count(rank) : output_count_;
}

inline std::byte* SlotCopier::landing_of(int rank) const {
  return start_.output + (joins_ ? received_blocks_.offset(rank) * element_ : 0);
}

// The input's part goes into the slot while, in place, its output has not been written yet: rounds are taken after they are left.
inline void SlotCopier::publish(std::int64_t round, int slot) {
  if (copies_own_early_) copy_own(round);
  if (!move_.publishes) return;
  std::byte* const message = message_of(spec_->rank, slot);
  if (move_.in_blocks) return publish_blocks(round, message);
  const Part piece = part(message_count_, round);
  if (move_.reduces_back) return publish_slices(piece, message);
  copy_bytes(message, start_.input + piece.begin * element_, piece.count * element_);
}

inline void SlotCopier::copy_out(std::byte* to, const std::byte* from, std::int64_t bytes) const {
  if (streams_) return kernel::copy_streaming(to, from, static_cast<std::size_t>(bytes));
  copy_bytes(to, from, bytes);
}

inline void SlotCopier::consume(std::int64_t round, int slot, int peer) {
  if (move_.consume_action == ConsumeAction::nothing) return;
  if (move_.reduces_back) return consume_reduced(round, slot, peer);
  if (move_.consume_action == ConsumeAction::copy) {
    const std::byte* message = message_of(peer, slot);
    const Part piece = part(consumed_from(peer), round);
    if (move_.in_blocks) message += spec_->rank * move_.stride;
    copy_out(landing_of(peer) + piece.begin * element_, message, piece.count * element_);
  }
}

// Ranks that wait look at the first line all the time. A store that reaches over two lines would have to get hold of both at once,
// and takes twice as long where eight ranks wait.
inline void SlotCopier::publish_inline(std::byte* payload) const {
  if (!move_.publishes) return;
  if (move_.stride > 0) return publish_blocks(0, payload);
  const std::byte* const from = start_.input + inline_from_;
  if (inline_bytes_ > first_line_bytes) {
    std::memcpy(payload + first_line_bytes, from + first_line_bytes,
                static_cast<std::size_t>(inline_bytes_ - first_line_bytes));
  }
  copy_bytes(payload, from, std::min<std::int64_t>(inline_bytes_, first_line_bytes));
}

inline void SlotCopier::consume_inline(const std::byte* payload, int peer) const {
  if (move_.consume_action != ConsumeAction::copy) return;
  copy_bytes(landing_of(peer), payload + spec_->rank * move_.stride, consumed_from(peer) * element_);
}

/// As the kernels do it; but to choose among those takes longer than to add the few floats of an inline slot. `add` gets the first operand's
/// floats, four at a time where there are so many, which takes one instruction, and where they begin.
template <class Add>
void add_floats(std::byte* to, const std::byte* first, std::int64_t count, Add add) {
  constexpr std::int64_t float_bytes = sizeof(float);
  const auto add_some = [&]<int width>(std::integral_constant<int, width>, std::int64_t at) {
    float sum[width];
    std::memcpy(sum, first + at, sizeof sum);
    add(sum, at);
    std::memcpy(to + at, sum, sizeof sum);
  };
  std::int64_t i = 0;
  for (; i + 4 <= count; i += 4) add_some(std::integral_constant<int, 4>(), i * float_bytes);
  for (; i + 2 <= count; i += 2) add_some(std::integral_constant<int, 2>(), i * float_bytes);
  for (; i < count; ++i) add_some(std::integral_constant<int, 1>(), i * float_bytes);
}

template <std::size_t width>
void add_to(float (&sum)[width], const std::byte* operand) {
  float next[width];
  std::memcpy(next, operand, sizeof next);
  for (std::size_t i = 0; i < width; ++i) sum[i] += next[i];
}

inline void SlotCopier::finish(std::int64_t round, int slot) {
  if (copies_own_ && !copies_own_early_) copy_own(round);
  if (move_.reduces_back) return;
  if (adds_floats_of_two_) {
    const std::byte* const theirs = message_of(1 - spec_->rank, 0);  // of two operands the order does not matter
    add_floats(start_.output, start_.input, output_count_,
               [theirs](auto& sum, std::int64_t at) { add_to(sum, theirs + at); });
  } else if (move_.consume_action == ConsumeAction::reduce) {
    const Part piece = part(output_count_, round);
    const std::int64_t begin = move_.in_blocks ? sent_blocks_.offset(spec_->rank) + piece.begin : piece.begin;
    reduce_to(start_.output + piece.begin * element_, {begin, piece.count},
              move_.in_blocks ? spec_->rank * move_.stride : 0, slot);
  } else if (zeros_) {
    const Part piece = part(output_count_, round);
    kernel::fill_zero(start_.dtype, start_.output + piece.begin * element_, piece.count);
  }
}

}  // namespace tutti::intranode
