// slot_copier.cpp: moves the bytes of one execution between the caller's arrays and the slots.
// SPDX-License-Identifier: Apache-2.0
#include "intranode/slot_copier.hpp"

#include <algorithm>

namespace tutti::intranode {

void SlotCopier::prepare(const ExecutionSpec& what, const TransferSchedule& schedule, const std::vector<Place>& places,
                         const SharedLimits& limits) {
  what_ = &what;
  spec_ = &what.spec;
  move_ = schedule;
  places_ = &places;
  const Spec& spec = *spec_;
  element_ = static_cast<std::int64_t>(size_of(what.dtype));
  source_count_ = move_.sources == Sources::none    ? 0
                  : move_.sources == Sources::one   ? 1
                  : move_.sources == Sources::lower ? spec.rank
                                                    : spec.size - 1;
  private_counts_ = joins_ = zeros_ = false;
  own_from_ = own_to_ = own_count_ = 0;
  message_count_ = output_count_ = spec.count;
  switch (spec.verb) {
    case Verb::broadcast: own_count_ = spec.rank == spec.root ? spec.count : 0; break;
    case Verb::permute: {
      const bool to_itself = std::ranges::count(spec.pairs, std::pair(spec.rank, spec.rank)) > 0;
      if (to_itself) own_count_ = spec.count;
      zeros_ = move_.sources == Sources::none && !to_itself;
      break;
    }
    default:
      if (has_blocks(spec.verb)) prepare_blocks();
  }
  inline_from_ = 0;
  inline_bytes_ = message_count_ * element_;
  if (move_.in_blocks && spec.size == 2) {
    inline_from_ = sent_blocks_.offset(1 - spec.rank) * element_;
    inline_bytes_ = sent_blocks_.count(1 - spec.rank) * element_;
  }
  adds_few_floats_ = move_.is_inline && what.dtype == DType::float32 && what.op.kind() == Op::Kind::sum;
  adds_floats_of_two_ = adds_few_floats_ && move_.consume_action == ConsumeAction::reduce && move_.reduce_ranks == 2 &&
                        spec.size == 2 && !move_.in_blocks && !move_.reduces_back && !spec.finish;
  const std::int64_t consumed = joins_ ? received_blocks_.offset(spec.size) : output_count_;
  const bool is_long =
      consumed * element_ >= (spec.verb == Verb::gather ? limits.stream_gather_bytes_min : limits.stream_bytes_min);
  may_stream_ = move_.consume_action != ConsumeAction::nothing && spec.verb != Verb::broadcast && is_long;
}

void SlotCopier::prepare_blocks() {
  const Spec& spec = *spec_;
  const bool personal = spec.verb == Verb::all_to_all;
  private_counts_ = personal && !spec.counts.empty();
  sent_blocks_.assign(spec.counts, spec.count);
  received_blocks_.assign(personal ? spec.recv_counts : spec.counts, spec.count);
  joins_ = gives_blocks(spec.verb);
  message_count_ = output_count_ = sent_blocks_.count(spec.rank);
  const bool keeps_own = spec.verb != Verb::reduce_scatter && (!has_root(spec.verb) || spec.rank == spec.root);
  if (!keeps_own) return;
  if (move_.in_blocks) own_from_ = sent_blocks_.offset(spec.rank);
  if (joins_) own_to_ = received_blocks_.offset(spec.rank);
  own_count_ = sent_blocks_.count(spec.rank);
}

const std::byte* SlotCopier::copy_of_sent(const std::byte* input) {
  // What arrives would run over what has yet to leave.
  const std::int64_t bytes = sent_blocks_.offset(spec_->size) * element_;
  std::byte* sent = sent_.reserve(static_cast<std::size_t>(bytes));
  copy_bytes(sent, input, bytes);
  return sent;
}

void SlotCopier::copy_own(std::int64_t round) const {
  const Part own = part(own_count_, round);
  copy_out(output_ + (own_to_ + own.begin) * element_, input_ + (own_from_ + own.begin) * element_,
           own.count * element_);
}

void SlotCopier::publish_blocks(std::int64_t round, std::byte* message) const {
  for (int i = 1; i < spec_->size; ++i) {
    const int peer = (spec_->rank + i) % spec_->size;
    const Part piece = part(sent_blocks_.count(peer), round);
    const std::byte* const from = input_ + (sent_blocks_.offset(peer) + piece.begin) * element_;
    copy_bytes(message + peer * move_.stride, from, piece.count * element_);
  }
}

/// `piece` of the arrays, which starts at `slot_offset` bytes in the slots.
void SlotCopier::reduce_to(std::byte* to, Part piece, std::int64_t slot_offset, int slot) {
  if (piece.count == 0) return;
  operands_.clear();
  for (int rank = 0; rank < move_.reduce_ranks; ++rank) {
    operands_.push_back(rank == spec_->rank ? input_ + piece.begin * element_ : message_of(rank, slot) + slot_offset);
  }
  if (operands_.empty()) {
    kernel::fill_identity(what_->op, what_->dtype, to, piece.count);  // exscan, rank 0
    return;
  }
  if (operands_.size() == 1) {
    if (to != operands_[0]) std::memcpy(to, operands_[0], static_cast<std::size_t>(piece.count * element_));
  } else if (streams_ && !move_.reduces_back && !spec_->finish) {
    stream_reduction(to, piece.count);
    return;
  } else if (adds_few_floats_) {
    add_floats(to, operands_, piece.count);
  } else {
    kernel::reduce_many(what_->op, what_->dtype, to, operands_, piece.count);
  }
  if (spec_->finish) kernel::divide(what_->dtype, to, to, what_->divisor, piece.count);
}

void SlotCopier::stream_reduction(std::byte* to, std::int64_t count) {
  std::byte* result = result_.reserve(worked_bytes);
  const std::int64_t piece = worked_bytes / element_;
  for (std::int64_t done = 0; done < count; done += piece) {
    const std::int64_t now = std::min(piece, count - done);
    kernel::reduce_many(what_->op, what_->dtype, result, operands_, now);
    kernel::copy_streaming(to + done * element_, result, static_cast<std::size_t>(now * element_));
    for (const void*& operand : operands_) operand = static_cast<const std::byte*>(operand) + now * element_;
  }
}

// ---- slices are reduced by their owners, and the results are left in the slots that they came from

// Nobody looks at this rank's own slice before it is reduced, and this rank finds it in its input.
void SlotCopier::publish_slices(Part piece, std::byte* message) const {
  const std::byte* const from = input_ + piece.begin * element_;
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
  std::byte* const own = consumes ? output_ + piece.begin * element_ : nullptr;
  std::byte* const result = !consumes ? in_slot_of(spec_->root) : streams_ ? in_slot_of(spec_->rank) : own;
  reduce_to(result, piece, slot_offset, slot);
  for (int i = 0; everyone_takes && i < reduce_sources(); ++i) {
    copy_bytes(in_slot_of(reduce_source(i)), result, piece.count * element_);
  }
  if (consumes && streams_) kernel::copy_streaming(own, result, static_cast<std::size_t>(piece.count * element_));
}

void SlotCopier::consume_reduced(std::int64_t round, int slot, int peer) const {
  const Part chunk = part(spec_->count, round);
  const Part theirs = slice(peer, chunk);
  copy_out(output_ + (chunk.begin + theirs.begin) * element_, message_of(spec_->rank, slot) + theirs.begin * element_,
           theirs.count * element_);
}

}  // namespace tutti::intranode
