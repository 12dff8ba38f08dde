// segments.cpp: cutting, packing and unpacking, verb by verb.
// SPDX-License-Identifier: Apache-2.0
#include "mpi/segments.hpp"

#include <algorithm>
#include <cstring>

#include "kernel/kernel.hpp"

namespace tutti::mpi {
namespace {

TuttiMpiKind kind_of(Verb verb) {
  switch (verb) {
    case Verb::all_reduce: return TUTTI_MPI_ALL_REDUCE;
    case Verb::reduce: return TUTTI_MPI_REDUCE;
    case Verb::broadcast: return TUTTI_MPI_BROADCAST;
    case Verb::all_gather: return TUTTI_MPI_ALL_GATHER;
    case Verb::gather: return TUTTI_MPI_GATHER;
    case Verb::reduce_scatter: return TUTTI_MPI_REDUCE_SCATTER;
    case Verb::scatter: return TUTTI_MPI_SCATTER;
    case Verb::all_to_all: return TUTTI_MPI_ALL_TO_ALL;
    case Verb::scan: return TUTTI_MPI_SCAN;
    case Verb::exscan: return TUTTI_MPI_EXSCAN;
    default: return TUTTI_MPI_PERMUTE;
  }
}

/// Whether what this rank sends lies apart from what it receives. A reduce_scatter could do without, but MPICH 4.0 copies its result over
/// itself then, and ends the process because it noticed.
bool has_send_memory(const Spec& spec) {
  return spec.verb == Verb::all_to_all || spec.verb == Verb::permute || spec.verb == Verb::reduce_scatter ||
         (spec.verb == Verb::scatter && spec.rank == spec.root);
}

}  // namespace

Segments::Segments(const ExecutionSpec& what, std::int64_t segment_bytes)
    : what_(what), element_(size_of(what.dtype)), size_(static_cast<std::int64_t>(element_)) {
  const Spec& spec = what_.spec;
  if (spec.verb == Verb::all_to_all) {
    blocks_ = send_blocks_of(spec);
    recv_blocks_ = recv_blocks_of(spec);
  } else {
    blocks_ = recv_blocks_ = has_blocks(spec.verb) ? blocks_of(spec) : Blocks::equal(1, spec.count);
  }
  longest_ = std::max(blocks_.longest(), recv_blocks_.longest());
  piece_ = std::max<std::int64_t>(1, segment_bytes / (size_ * blocks_.parts()));
  if (has_send_memory(spec)) send_count_ = std::min(blocks_.total(), piece_ * blocks_.parts());
  recv_count_ = std::min(recv_blocks_.total(), piece_ * recv_blocks_.parts());
  find_peers();
  find_fused();
}

void Segments::find_peers() {
  for (const auto& [from, to] : what_.spec.pairs) {
    if (to == what_.spec.rank) source_ = from;
    if (from == what_.spec.rank) destination_ = to;
  }
}

void Segments::find_fused() {
  const Verb verb = what_.spec.verb;
  if (blocks_.total() * size_ > static_cast<std::int64_t>(RoundRecord::payload_bytes)) return;
  if (verb == Verb::all_reduce || verb == Verb::reduce || verb == Verb::reduce_scatter) fused_ = Fused::reduced;
  if (root_gives(verb) || joins(verb)) fused_ = Fused::joined;
}

std::int64_t Segments::piece_of(std::int64_t count, std::int64_t begin) const {
  return std::clamp<std::int64_t>(count - begin, 0, piece_);
}

void Segments::copy(std::byte* to, const std::byte* from, std::int64_t count) const {
  if (count > 0 && to != from) std::memcpy(to, from, static_cast<std::size_t>(count) * element_);
}

void Segments::deliver(std::byte* to, const std::byte* from, std::int64_t count) const {
  if (count == 0 || to == nullptr) return;
  if (what_.spec.finish) {
    kernel::divide(what_.dtype, to, from, what_.divisor, count);
  } else {
    copy(to, from, count);
  }
}

void Segments::lay_out(const Blocks& blocks, std::int64_t begin, std::vector<int>& counts,
                       std::vector<int>& offsets) const {
  counts.clear();
  offsets.clear();
  int offset = 0;
  for (int block = 0; block < blocks.parts(); ++block) {
    counts.push_back(static_cast<int>(piece_of(blocks.count(block), begin)));
    offsets.push_back(offset);
    offset += counts.back();
  }
}

void Segments::pack(std::byte* to, const std::byte* from, const Blocks& blocks, std::int64_t begin) const {
  for (int block = 0; block < blocks.parts(); ++block) {
    const std::int64_t count = piece_of(blocks.count(block), begin);
    if (count == 0) continue;
    copy(to, at(from, blocks.offset(block) + begin), count);
    to = at(to, count);
  }
}

void Segments::unpack(const std::byte* from, std::byte* to, const Blocks& blocks, std::int64_t begin) const {
  for (int block = 0; block < blocks.parts(); ++block) {
    const std::int64_t count = piece_of(blocks.count(block), begin);
    if (count == 0) continue;
    copy(at(to, blocks.offset(block) + begin), from, count);
    from = at(from, count);
  }
}

void Segments::fill(Segment& segment, std::int64_t index, const std::byte* input) const {
  const Spec& spec = what_.spec;
  const std::int64_t begin = segment.begin = index * piece_;
  TuttiMpiCollective& to = segment.what;
  to = {.kind = kind_of(spec.verb),
        .dtype = static_cast<int>(what_.dtype),
        .op = static_cast<int>(what_.op.kind()),
        .root = spec.root,
        .count = 0,
        .send = nullptr,
        .recv = segment.recv,
        .counts = nullptr,
        .offsets = nullptr,
        .recv_counts = nullptr,
        .recv_offsets = nullptr,
        .destination = destination_,
        .source = source_};
  lay_out(blocks_, begin, segment.counts, segment.offsets);
  to.counts = segment.counts.data();
  to.offsets = segment.offsets.data();
  const auto own = static_cast<std::size_t>(has_blocks(spec.verb) ? spec.rank : 0);
  to.count = segment.counts[own];
  switch (spec.verb) {
    case Verb::broadcast:
      if (is_root()) copy(segment.recv, at(input, begin), to.count);
      break;
    case Verb::reduce:
      copy(segment.recv, at(input, begin), to.count);
      if (!is_root()) to.send = segment.recv;
      break;
    case Verb::all_gather: copy(at(segment.recv, segment.offsets[own]), at(input, begin), to.count); break;
    case Verb::gather:
      copy(at(segment.recv, is_root() ? segment.offsets[own] : 0), at(input, begin), to.count);
      if (!is_root()) to.send = segment.recv;
      break;
    case Verb::reduce_scatter:
      pack(segment.send, input, blocks_, begin);
      to.send = segment.send;
      break;
    case Verb::scatter:
      to.send = segment.send;
      if (is_root()) {
        pack(segment.send, input, blocks_, begin);
        to.recv = nullptr;  // its own piece stays where it is
      }
      break;
    case Verb::all_to_all:
      lay_out(recv_blocks_, begin, segment.recv_counts, segment.recv_offsets);
      to.recv_counts = segment.recv_counts.data();
      to.recv_offsets = segment.recv_offsets.data();
      pack(segment.send, input, blocks_, begin);
      to.send = segment.send;
      break;
    case Verb::permute:
      if (destination_ >= 0) copy(segment.send, at(input, begin), to.count);
      to.send = segment.send;
      break;
    default: copy(segment.recv, at(input, begin), to.count);
  }
}

void Segments::drain(const Segment& segment, std::byte* output) const {
  const Spec& spec = what_.spec;
  const std::int64_t begin = segment.begin;
  switch (spec.verb) {
    case Verb::reduce:
      if (is_root()) deliver(at(output, begin), segment.recv, segment.what.count);
      break;
    case Verb::gather:
      if (!is_root()) break;
      [[fallthrough]];
    case Verb::all_gather: unpack(segment.recv, output, blocks_, begin); break;
    case Verb::scatter:
      deliver(at(output, begin),
              is_root() ? at(segment.send, segment.offsets[static_cast<std::size_t>(spec.rank)]) : segment.recv,
              segment.what.count);
      break;
    case Verb::all_to_all: unpack(segment.recv, output, recv_blocks_, begin); break;
    case Verb::permute:
      if (source_ >= 0) deliver(at(output, begin), segment.recv, segment.what.count);
      break;
    case Verb::exscan:
      if (spec.rank > 0) deliver(at(output, begin), segment.recv, segment.what.count);
      break;
    default:
      if (output != nullptr) deliver(at(output, begin), segment.recv, segment.what.count);
  }
}

void Segments::write_rest(std::byte* output) const {
  const Spec& spec = what_.spec;
  if (spec.verb == Verb::exscan && spec.rank == 0) kernel::fill_identity(what_.op, what_.dtype, output, spec.count);
  if (spec.verb == Verb::permute && source_ < 0) kernel::fill_zero(what_.dtype, output, spec.count);
}

void Segments::fill(RoundRecord& record, const std::byte* input) const {
  const Spec& spec = what_.spec;
  record.fused = fused_;
  record.op = what_.op.kind();
  record.dtype = what_.dtype;
  record.bytes = static_cast<std::uint8_t>(blocks_.total() * size_);
  std::byte* const payload = record.payload.data();
  if (fused_ == Fused::joined) std::memset(payload, 0, record.bytes);
  if (joins(spec.verb)) {
    copy(at(payload, blocks_.offset(spec.rank)), input, blocks_.count(spec.rank));
  } else if (fused_ == Fused::reduced || (fused_ == Fused::joined && is_root())) {
    copy(payload, input, blocks_.total());
  }
}

void Segments::drain(const RoundRecord& record, std::byte* output) const {
  const Spec& spec = what_.spec;
  if (root_gets(spec.verb) && !is_root()) return;
  if (splits(spec.verb)) {
    deliver(output, at(record.payload.data(), blocks_.offset(spec.rank)), blocks_.count(spec.rank));
  } else if (output != nullptr) {
    deliver(output, record.payload.data(), blocks_.total());
  }
}

}  // namespace tutti::mpi
