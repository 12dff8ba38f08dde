// direct.cpp: large arrays are read, and in arenas written, where they lie.
// SPDX-License-Identifier: Apache-2.0
#include "intranode/direct.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "kernel/kernel.hpp"
#include "kernel/stream.hpp"

namespace tutti::intranode {
namespace {

std::int64_t count_of(const Spec& spec, int rank) {
  return spec.counts.empty() ? spec.count : spec.counts[static_cast<std::size_t>(rank)];
}
std::int64_t offset_of(const Spec& spec, int rank) {
  if (spec.counts.empty()) return rank * spec.count;
  return std::accumulate(spec.counts.begin(), spec.counts.begin() + rank, std::int64_t{0});
}
std::int64_t total_of(const Spec& spec) { return offset_of(spec, spec.size); }

std::int64_t longest_of(const Spec& spec) {
  return spec.counts.empty() ? spec.count : *std::max_element(spec.counts.begin(), spec.counts.end());
}

std::int64_t inputs_of(const Spec& spec) {
  if (takes_blocks(spec.verb)) return total_of(spec);
  return joins(spec.verb) ? count_of(spec, spec.rank) : spec.count;
}
std::int64_t outputs_of(const Spec& spec) {
  if (gives_blocks(spec.verb)) return total_of(spec);
  return splits(spec.verb) ? count_of(spec, spec.rank) : spec.count;
}

bool copies(Verb verb) { return !reduces(verb) && verb != Verb::barrier; }

bool is_worth_reading(const Spec& spec, std::int64_t element_bytes, bool streams, const Reach& reach) {
  // One array for many, or the arrays of many for one: through slots both sides copy at the same time, and nobody stands in line
  // for one process's memory.
  const bool through_slots =
      spec.verb == Verb::broadcast || spec.verb == Verb::gather || (spec.verb == Verb::all_gather && spec.size > 2);
  if (!reach.cross_memory || through_slots) return false;
  const SharedLimits& limits = reach.limits;
  const std::int64_t block_bytes = longest_of(spec) * element_bytes;
  if (spec.size == 2 && spec.verb != Verb::permute && block_bytes < limits.read_by_two_bytes_min) return false;
  // Each its own part of one array: through slots the root would copy all of them. But several that read small pages of one process
  // get into each other's way.
  if (spec.verb == Verb::scatter)
    return spec.size == 2 || total_of(spec) * element_bytes >= limits.read_scattered_bytes_min;
  return !streams && block_bytes <= limits.read_bytes_max;
}

}  // namespace

bool is_worth_exchanging(const Spec& spec, std::int64_t element_bytes, const Reach& reach) {
  const SharedLimits& limits = reach.limits;
  if (spec.size == 1) return false;
  if (spec.verb == Verb::all_to_all && !spec.counts.empty()) return false;  // nobody knows the others' counts
  const std::int64_t longest = longest_of(spec);
  if (copies(spec.verb)) return longest * element_bytes >= limits.direct_copy_bytes_min;
  if (spec.verb == Verb::all_reduce) return longest * element_bytes >= limits.direct_reduce_bytes_min;
  return spec.verb == Verb::reduce_scatter && longest * spec.size * element_bytes >= limits.direct_reduce_bytes_min;
}

BufferInfo buffer_info_of(const ExecutionSpec& what, const Buffers& arrays, SharedSegment& segment, std::uint64_t seq) {
  const Spec& spec = what.spec;
  const std::size_t element = size_of(what.dtype);
  const auto exposed = [&](const std::byte* data, std::int64_t count) -> std::uint64_t {
    if (data == nullptr || count == 0) return 0;
    const auto offset = segment.expose(data, static_cast<std::size_t>(count) * element, seq);
    return offset ? *offset + 1 : 0;
  };
  BufferInfo here{.input = reinterpret_cast<std::uint64_t>(arrays.input),
                  .output = reinterpret_cast<std::uint64_t>(arrays.output)};
  here.input_offset = exposed(arrays.input, inputs_of(spec));
  if (reduces(spec.verb)) here.output_offset = exposed(arrays.output, outputs_of(spec));
  here.in_place = arrays.input == arrays.output ? 1 : 0;
  return here;
}

DirectWay direct_way(const Spec& spec, std::int64_t element_bytes, const std::vector<BufferInfo>& all,
                     const Reach& reach) {
  bool inputs = true, outputs = true;      // in arenas
  bool in_place = false, streams = false;  // anybody's
  for (int rank = 0; rank < spec.size; ++rank) {
    const BufferInfo& there = all[static_cast<std::size_t>(rank)];
    const bool has_input = !root_gives(spec.verb) || rank == spec.root;
    if (has_input) inputs = inputs && there.input_offset != 0;
    outputs = outputs && there.output_offset != 0;
    in_place = in_place || there.in_place != 0;
    streams = streams || there.streams != 0;
  }
  if (spec.verb == Verb::all_reduce) return inputs && outputs ? DirectWay::push : DirectWay::none;
  if (spec.verb == Verb::reduce_scatter) return inputs ? DirectWay::copy : DirectWay::none;
  const bool exchanges = spec.verb == Verb::all_to_all || spec.verb == Verb::permute;
  if (exchanges && in_place) return DirectWay::none;  // what arrives would run over what others still read
  return inputs || is_worth_reading(spec, element_bytes, streams, reach) ? DirectWay::copy : DirectWay::none;
}

void Direct::begin(DirectWay way, const Parts& parts) {
  parts_ = parts;
  spec_ = &parts.what->spec;
  way_ = way;
  element_ = static_cast<std::int64_t>(size_of(parts.what->dtype));
  // In place the lines are in the caches anyway: they were just read.
  streams_ = way == DirectWay::push && spec_->count * element_ >= parts.stream_bytes_min &&
             std::ranges::all_of(*parts.all, [](const BufferInfo& there) { return there.in_place == 0; });
}

void Direct::carry_out() {
  if (way_ == DirectWay::push) {
    push_slice();
  } else if (spec_->verb == Verb::reduce_scatter) {
    reduce_own_block();
  } else {
    copy_blocks();
  }
}

/// Elements [begin, begin + count) of the rank's array, which was seen to lie in an arena.
std::byte* Direct::input_of(int rank, std::int64_t begin, std::int64_t count) const {
  if (rank == spec_->rank) return const_cast<std::byte*>(parts_.arrays->input) + begin * element_;
  const std::uint64_t offset = (*parts_.all)[static_cast<std::size_t>(rank)].input_offset - 1;
  return parts_.segment->at(rank, offset + static_cast<std::uint64_t>(begin * element_),
                            static_cast<std::size_t>(count * element_));
}

std::byte* Direct::output_of(int rank, std::int64_t begin, std::int64_t count) const {
  if (rank == spec_->rank) return parts_.arrays->output + begin * element_;
  const std::uint64_t offset = (*parts_.all)[static_cast<std::size_t>(rank)].output_offset - 1;
  return parts_.segment->at(rank, offset + static_cast<std::uint64_t>(begin * element_),
                            static_cast<std::size_t>(count * element_));
}

void Direct::copy_from(int peer, std::int64_t begin, std::int64_t count, std::byte* to) const {
  const auto bytes = static_cast<std::size_t>(count * element_);
  if (bytes == 0) return;
  const BufferInfo& there = (*parts_.all)[static_cast<std::size_t>(peer)];
  if (peer == spec_->rank || there.input_offset != 0) {
    const std::byte* from = input_of(peer, begin, count);
    if (from != to) std::memcpy(to, from, bytes);
  } else {
    parts_.segment->read(peer, there.input + static_cast<std::uint64_t>(begin * element_), to, bytes);
  }
}

// Peers in rotated order, so that not all read from one.
void Direct::copy_blocks() const {
  const Spec& spec = *spec_;
  const auto each = [&](auto visit) {
    for (int i = 0; i < spec.size; ++i) visit((spec.rank + i) % spec.size);
  };
  switch (spec.verb) {
    case Verb::broadcast: copy_from(spec.root, 0, spec.count, parts_.arrays->output); break;
    case Verb::scatter:
      copy_from(spec.root, offset_of(spec, spec.rank), count_of(spec, spec.rank), parts_.arrays->output);
      break;
    case Verb::gather:
      if (spec.rank != spec.root) break;
      [[fallthrough]];
    case Verb::all_gather:
      each([&](int peer) {
        copy_from(peer, 0, count_of(spec, peer), parts_.arrays->output + offset_of(spec, peer) * element_);
      });
      break;
    case Verb::all_to_all:
      each([&](int peer) {
        copy_from(peer, spec.rank * spec.count, spec.count, parts_.arrays->output + peer * spec.count * element_);
      });
      break;
    default: {  // permute
      const auto arriving = std::find_if(spec.pairs.begin(), spec.pairs.end(),
                                         [&](const auto& pair) { return pair.second == spec.rank; });
      if (arriving == spec.pairs.end()) {
        kernel::fill_zero(parts_.what->dtype, parts_.arrays->output, spec.count);
      } else {
        copy_from(arriving->first, 0, spec.count, parts_.arrays->output);
      }
    }
  }
}

void Direct::reduce(std::byte* to, std::int64_t begin, std::int64_t count) {
  operands_.clear();
  for (int rank = 0; rank < spec_->size; ++rank) operands_.push_back(input_of(rank, begin, count));
  kernel::reduce_many(parts_.what->op, parts_.what->dtype, to, operands_, count);
  if (spec_->finish) kernel::divide(parts_.what->dtype, to, to, parts_.what->divisor, count);
}

void Direct::reduce_own_block() {
  const std::int64_t begin = offset_of(*spec_, spec_->rank), count = count_of(*spec_, spec_->rank);
  const std::int64_t piece = worked_bytes / element_;
  for (std::int64_t at = 0; at < count; at += piece) {
    reduce(parts_.arrays->output + at * element_, begin + at, std::min(piece, count - at));
  }
}

void Direct::push_slice() {
  // In place is fine: of anybody's input only the owner reads a slice, and nothing is written over it before it is reduced.
  const Part slice = slice_of(spec_->rank, spec_->size, spec_->count, element_);
  const std::int64_t piece = worked_bytes / element_;
  for (std::int64_t done = 0; done < slice.count; done += piece) {
    const std::int64_t at = slice.begin + done, count = std::min(piece, slice.count - done);
    const auto bytes = static_cast<std::size_t>(count * element_);
    std::byte* own = parts_.arrays->output + at * element_;
    std::byte* result = streams_ ? result_.reserve(worked_bytes) : own;
    reduce(result, at, count);
    if (streams_) kernel::copy_streaming(own, result, bytes);
    for (int i = 1; i < spec_->size; ++i) {
      const int peer = (spec_->rank + i) % spec_->size;
      std::byte* theirs = output_of(peer, at, count);
      streams_ ? kernel::copy_streaming(theirs, result, bytes) : static_cast<void>(std::memcpy(theirs, result, bytes));
    }
  }
}

}  // namespace tutti::intranode
