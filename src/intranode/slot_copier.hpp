// slot_copier.hpp: moves the bytes of one execution between the caller's arrays and the slots, when Steps says so.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/aligned_buffer.hpp"
#include "intranode/control_block.hpp"
#include "intranode/execution_start.hpp"
#include "intranode/steps.hpp"
#include "intranode/transfer_schedule.hpp"

namespace tutti::intranode {

// What is inline and not here is in slot_copier_hot.hpp.

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

/// The i-th rank after this one, going round; i is below the size. A waiting rank asks all the time, and a division is slow.
inline int next_but(int i, int rank, int size) {
  const int next = rank + 1 + i;
  return next < size ? next : next - size;
}

/// A member's control block, as this process sees it.
struct Place {
  ControlBlock* control_block = nullptr;
  std::byte* slots[Steps<Native>::places] = {};
};

class SlotCopier {
 public:
  /// What calls have in common that differ in their arrays only. `places` and what `start` points to outlive the work.
  void prepare(const ExecutionStart& start, const TransferSchedule& schedule, const std::vector<Place>& places,
               const SharedLimits& limits);
  /// One of them.
  inline void begin(const std::byte* input, std::byte* output, int inline_slot);

  /// Whether the result will be written past the caches. In place its lines are there anyway: they were just read.
  [[nodiscard]] bool streams(const std::byte* input, const std::byte* output) const {
    return may_stream_ && input != output;
  }
  /// Of this rank's message in round 0, from the place's beginning to the last byte.
  [[nodiscard]] std::int64_t first_message_bytes() const {
    return move_.stride > 0 ? spec_->size * move_.stride : std::min(message_count_, move_.chunk) * element_;
  }

  // What Steps asks for.
  inline void publish(std::int64_t round, int slot);
  [[nodiscard]] int reduce_sources() const { return spec_->size - 1; }
  [[nodiscard]] int reduce_source(int i) const { return next_but(i, spec_->rank, spec_->size); }
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
  inline void publish_inline(std::byte* payload) const;
  inline void consume_inline(const std::byte* payload, int peer) const;

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

  ExecutionStart start_;
  const Spec* spec_ = nullptr;
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

}  // namespace tutti::intranode
