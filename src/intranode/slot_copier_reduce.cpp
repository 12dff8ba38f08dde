// slot_copier_reduce.cpp: slices are reduced by their owners, and reduced back in the slots where they were left.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "intranode/slot_copier.hpp"
#include "intranode/slot_copier_hot.hpp"

namespace tutti::intranode {

// Nobody looks at this rank's own slice before it is reduced, and this rank finds it in its input.
void SlotCopier::publish_slices(Part piece, std::byte* message) const {
  const std::byte* const from = start_.input + piece.begin * element_;
  const Part own = slice(spec_->rank, piece);
  const std::int64_t end = own.begin + own.count;
  copy_bytes(message, from, own.begin * element_);
  copy_bytes(message + end * element_, from + end * element_, (piece.count - end) * element_);
}

void SlotCopier::reduce_back(std::int64_t round, int slot) {
  const Part chunk = part(spec_->count, round);
  const Part own = slice(spec_->rank, chunk);
  const std::int64_t piece = worked_bytes / element_;
  for (std::int64_t at = own.begin; at < own.begin + own.count; at += piece) {
    reduce_back_slice({chunk.begin + at, std::min(piece, own.begin + own.count - at)}, at * element_, slot);
  }
}

void SlotCopier::reduce_back_slice(Part piece, std::int64_t slot_offset, int slot) {
  const bool everyone_takes = spec_->verb == Verb::all_reduce;
  const bool consumes = everyone_takes || spec_->rank == spec_->root;
  const auto in_slot_of = [&](int rank) { return message_of(rank, slot) + slot_offset; };
  std::byte* const own = consumes ? start_.output + piece.begin * element_ : nullptr;
  std::byte* const result = !consumes ? in_slot_of(spec_->root) : streams_ ? in_slot_of(spec_->rank) : own;
  reduce_to(result, piece, slot_offset, slot);
  for (int i = 0; everyone_takes && i < reduce_sources(); ++i) {
    copy_bytes(in_slot_of(reduce_source(i)), result, piece.count * element_);
  }
  if (consumes && streams_) copy_streaming(own, result, piece.count * element_);
}

void SlotCopier::consume_reduced(std::int64_t round, int slot, int peer) const {
  const Part chunk = part(spec_->count, round);
  const Part theirs = slice(peer, chunk);
  copy_out(start_.output + (chunk.begin + theirs.begin) * element_,
           message_of(spec_->rank, slot) + theirs.begin * element_, theirs.count * element_);
}

}  // namespace tutti::intranode
