// slot_copier.hpp: moves the bytes of one execution between the caller's arrays and the slots, when Steps says so.
// SPDX-License-Identifier: Apache-2.0
//
// A call of a few bytes takes some 200 ns, half of which a cache line travels. What such a call passes through is inline, below the class.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <vector>

#include "engine/aligned_buffer.hpp"
#include "engine/executor.hpp"
#include "intranode/control_block.hpp"
#include "intranode/steps.hpp"
#include "intranode/transfer_schedule.hpp"
#include "kernel/kernel.hpp"
#include "kernel/stream.hpp"

namespace tutti::intranode {

/// Where blocks begin in an array. Like plan/layout.hpp's Blocks, but it keeps its memory from execution to execution.
class BlockOffsets {
 public:
  void assign(const std::vector<std::int64_t>& counts, std::int64_t each) {
    each_ = each;
    begins_.clear();
    if (counts.empty()) return;
    begins_.push_back(0);
    for (const std::int64_t count : counts) begins_.push_back(begins_.back() + count);
  }
  [[nodiscard]] std::int64_t offset(int i) const {
    return begins_.empty() ? i * each_ : begins_[static_cast<std::size_t>(i)];
  }
  [[nodiscard]] std::int64_t count(int i) const { return begins_.empty() ? each_ : offset(i + 1) - offset(i); }

 private:
  std::int64_t each_ = 0;
  std::vector<std::int64_t> begins_;
};

/// A member's control block, as this process sees it.
struct Place {
  ControlBlock* control_block = nullptr;
  std::byte* slots[Steps<Native>::places] = {};
};

class SlotCopier {
 public:
  /// What calls have in common that differ in their arrays only. `what` and `places` outlive the work.
  void prepare(const ExecutionSpec& what, const TransferSchedule& schedule, const std::vector<Place>& places,
               const SharedLimits& limits);
  /// One of them.
  inline void begin(const Buffers& arrays, int inline_slot);

  /// Whether the result will be written past the caches. In place its lines are there anyway: they were just read.
  [[nodiscard]] bool streams(const Buffers& arrays) const { return may_stream_ && arrays.input != arrays.output; }
  /// Of this rank's message in round 0, from the place's beginning to the last byte.
  [[nodiscard]] std::int64_t first_message_bytes() const {
    return move_.stride > 0 ? spec_->size * move_.stride : std::min(message_count_, move_.chunk) * element_;
  }

  // What Steps asks for.
  inline void publish(std::int64_t round, int slot);
  [[nodiscard]] int reduce_sources() const { return spec_->size - 1; }
  /// The i-th rank after this one, going round. A waiting rank asks all the time, and a division is slow.
  [[nodiscard]] int reduce_source(int i) const {
    const int next = spec_->rank + 1 + i;
    return next < spec_->size ? next : next - spec_->size;
  }
  void reduce_back(std::int64_t round, int slot);
  [[nodiscard]] int consume_sources() const { return source_count_; }
  [[nodiscard]] int consume_source(int i) const {
    switch (move_.sources) {
      case Sources::one: return move_.one;
      case Sources::lower: return i;
      default: return reduce_source(i);
    }
  }
  /// In round 0 everyone is expected, with or without elements: signatures are compared then.
  [[nodiscard]] bool expects(int peer, std::int64_t round) const {
    return round == 0 || !private_counts_ || spec_->recv_counts[static_cast<std::size_t>(peer)] > round * move_.chunk;
  }
  inline void consume(std::int64_t round, int slot, int peer);
  inline void finish(std::int64_t round, int slot);
  // The same for what fits into an inline slot.
  inline void publish_inline() const;
  inline void consume_inline(int peer) const;

 private:
  [[nodiscard]] Part part(std::int64_t total, std::int64_t round) const {
    const std::int64_t begin = std::min(round * move_.chunk, total);
    return {begin, std::min(total - begin, move_.chunk)};
  }
  [[nodiscard]] Part slice(int owner, Part piece) const { return slice_of(owner, spec_->size, piece.count, element_); }
  [[nodiscard]] inline std::byte* message_of(int rank, int slot) const;
  [[nodiscard]] inline std::int64_t consumed_from(int rank) const;  // elements
  [[nodiscard]] inline std::byte* landing_of(int rank) const;       // where they go
  [[nodiscard]] const std::byte* copy_of_sent(const std::byte* input);
  void publish_slices(Part piece, std::byte* message) const;
  void reduce_back_slice(Part piece, std::int64_t slot_offset, int slot);
  void consume_reduced(std::int64_t round, int slot, int peer) const;
  void publish_blocks(std::int64_t round, std::byte* message) const;
  inline void copy_out(std::byte* to, const std::byte* from, std::int64_t bytes) const;
  void copy_own(std::int64_t round) const;
  void reduce_to(std::byte* to, Part piece, std::int64_t slot_offset, int slot);
  void stream_reduction(std::byte* to, std::int64_t count);
  void prepare_blocks();

  const ExecutionSpec* what_ = nullptr;
  const Spec* spec_ = nullptr;
  const std::byte* input_ = nullptr;
  std::byte* output_ = nullptr;
  TransferSchedule move_;
  const std::vector<Place>* places_ = nullptr;
  std::int64_t element_ = 1;  // bytes
  int source_count_ = 0;
  int inline_slot_ = 0;
  bool private_counts_ = false;
  bool joins_ = false;  // what comes from each rank has its own place in the output
  bool zeros_ = false;  // permute: nothing arrives
  BlockOffsets sent_blocks_, received_blocks_;
  std::int64_t message_count_ = 0, output_count_ = 0;
  std::int64_t inline_from_ = 0, inline_bytes_ = 0;  // of the input: what goes into an inline slot, if it is one piece
  std::int64_t own_from_ = 0, own_to_ = 0;  // elements: where this rank's part for itself lies, and where it goes
  std::int64_t own_count_ = 0;
  bool copies_own_ = false;            // … and it is not there already
  bool copies_own_early_ = false;      // … nobody waits for this rank, which need not wait for them either
  std::vector<const void*> operands_;  // operands of a reduction
  bool adds_few_floats_ = false, adds_floats_of_two_ = false;
  bool may_stream_ = false;  // results are large enough to go past the caches
  bool streams_ = false;
  AlignedBuffer result_;  // … a piece at a time
  AlignedBuffer sent_;    // an uneven exchange in place sends from a copy
};

inline void copy_bytes(std::byte* to, const std::byte* from, std::int64_t bytes) {
  if (bytes == 8) {  // a call of the library's memcpy takes longer
    std::memcpy(to, from, 8);
  } else if (bytes > 0) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
}

inline void SlotCopier::begin(const Buffers& arrays, int inline_slot) {
  input_ = arrays.input;
  output_ = arrays.output;
  inline_slot_ = inline_slot;
  streams_ = streams(arrays);
  if (private_counts_ && input_ == output_) input_ = copy_of_sent(input_);
  copies_own_ = own_count_ > 0 && input_ + own_from_ * element_ != output_ + own_to_ * element_;
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
  return output_ + (joins_ ? received_blocks_.offset(rank) * element_ : 0);
}

// The input's part goes into the slot while, in place, its output has not been written yet: rounds are taken after they are left.
inline void SlotCopier::publish(std::int64_t round, int slot) {
  if (copies_own_early_) copy_own(round);
  if (!move_.publishes) return;
  std::byte* const message = message_of(spec_->rank, slot);
  if (move_.in_blocks) return publish_blocks(round, message);
  const Part piece = part(message_count_, round);
  if (move_.reduces_back) return publish_slices(piece, message);
  copy_bytes(message, input_ + piece.begin * element_, piece.count * element_);
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
inline void SlotCopier::publish_inline() const {
  if (!move_.publishes) return;
  std::byte* const payload = message_of(spec_->rank, 0);
  if (move_.stride > 0) return publish_blocks(0, payload);
  const std::byte* const from = input_ + inline_from_;
  if (inline_bytes_ > first_line_bytes) {
    std::memcpy(payload + first_line_bytes, from + first_line_bytes,
                static_cast<std::size_t>(inline_bytes_ - first_line_bytes));
  }
  copy_bytes(payload, from, std::min<std::int64_t>(inline_bytes_, first_line_bytes));
}

inline void SlotCopier::consume_inline(int peer) const {
  if (move_.consume_action != ConsumeAction::copy) return;
  copy_bytes(landing_of(peer), message_of(peer, 0) + spec_->rank * move_.stride, consumed_from(peer) * element_);
}

/// `width` floats of each operand, which begin at byte `at`.
template <int width, class Operands>
inline void add_some_floats(std::byte* to, const Operands& operands, std::int64_t at) {
  float sum[width], next[width];
  std::memcpy(sum, static_cast<const std::byte*>(operands[0]) + at, sizeof sum);
  for (std::size_t i = 1; i < std::size(operands); ++i) {
    std::memcpy(next, static_cast<const std::byte*>(operands[i]) + at, sizeof next);
    for (int k = 0; k < width; ++k) sum[k] += next[k];
  }
  std::memcpy(to + at, sum, sizeof sum);
}

/// The kernels can do this, too, but choosing among them takes longer than adding the few floats of an inline slot. Four floats, where
/// there are so many, are added by one instruction.
template <class Operands>
inline void add_floats(std::byte* to, const Operands& operands, std::int64_t count) {
  constexpr std::int64_t float_bytes = sizeof(float);
  std::int64_t i = 0;
  for (; i + 4 <= count; i += 4) add_some_floats<4>(to, operands, i * float_bytes);
  for (; i + 2 <= count; i += 2) add_some_floats<2>(to, operands, i * float_bytes);
  for (; i < count; ++i) add_some_floats<1>(to, operands, i * float_bytes);
}

inline void SlotCopier::finish(std::int64_t round, int slot) {
  if (copies_own_ && !copies_own_early_) copy_own(round);
  if (move_.reduces_back) return;
  if (adds_floats_of_two_) {
    const void* const both[] = {input_, message_of(1 - spec_->rank, 0)};  // of two operands the order does not matter
    add_floats(output_, both, output_count_);
  } else if (move_.consume_action == ConsumeAction::reduce) {
    const Part piece = part(output_count_, round);
    const std::int64_t begin = move_.in_blocks ? sent_blocks_.offset(spec_->rank) + piece.begin : piece.begin;
    reduce_to(output_ + piece.begin * element_, {begin, piece.count}, move_.in_blocks ? spec_->rank * move_.stride : 0,
              slot);
  } else if (zeros_) {
    const Part piece = part(output_count_, round);
    kernel::fill_zero(what_->dtype, output_ + piece.begin * element_, piece.count);
  }
}

}  // namespace tutti::intranode
