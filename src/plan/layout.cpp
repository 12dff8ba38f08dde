// layout.cpp: which elements belong to whom.
// SPDX-License-Identifier: Apache-2.0
#include "plan/layout.hpp"

#include <numeric>

namespace tutti {

Blocks Blocks::equal(int parts, std::int64_t each) {
  Blocks blocks;
  blocks.parts_ = parts;
  blocks.each_ = each;
  blocks.longest_ = each;
  return blocks;
}

Blocks Blocks::split(std::int64_t total, int parts) {
  Blocks blocks;
  blocks.parts_ = parts;
  blocks.each_ = total / parts;
  blocks.longer_ = total % parts;
  blocks.longest_ = blocks.each_ + (blocks.longer_ > 0 ? 1 : 0);
  return blocks;
}

Blocks Blocks::of(std::span<const std::int64_t> counts) {
  Blocks blocks;
  blocks.parts_ = static_cast<int>(counts.size());
  blocks.begins_.assign(1, 0);
  blocks.begins_.reserve(counts.size() + 1);
  for (const std::int64_t count : counts) {
    blocks.begins_.push_back(blocks.begins_.back() + count);
    blocks.longest_ = std::max(blocks.longest_, count);
  }
  return blocks;
}

Blocks blocks_of(const Spec& spec) {
  return spec.counts.empty() ? Blocks::equal(spec.size, spec.count) : Blocks::of(spec.counts);
}

Blocks send_blocks_of(const Spec& spec) { return blocks_of(spec); }

Blocks recv_blocks_of(const Spec& spec) {
  return spec.recv_counts.empty() ? Blocks::equal(spec.size, spec.count) : Blocks::of(spec.recv_counts);
}

std::int64_t input_count(const Spec& spec) {
  const bool at_root = spec.rank == spec.root;
  switch (spec.verb) {
    case Verb::broadcast: return at_root ? spec.count : 0;
    case Verb::all_gather:
    case Verb::gather: return spec.counts.empty() ? spec.count : spec.counts[static_cast<std::size_t>(spec.rank)];
    case Verb::reduce_scatter:
    case Verb::all_to_all: return blocks_of(spec).total();
    case Verb::scatter: return at_root ? blocks_of(spec).total() : 0;
    case Verb::barrier: return 0;
    default: return spec.count;
  }
}

std::int64_t output_count(const Spec& spec) {
  const bool at_root = spec.rank == spec.root;
  switch (spec.verb) {
    case Verb::reduce: return at_root ? spec.count : 0;
    case Verb::all_gather: return blocks_of(spec).total();
    case Verb::gather: return at_root ? blocks_of(spec).total() : 0;
    case Verb::reduce_scatter:
    case Verb::scatter: return spec.counts.empty() ? spec.count : spec.counts[static_cast<std::size_t>(spec.rank)];
    case Verb::all_to_all: return recv_blocks_of(spec).total();
    case Verb::barrier: return 0;
    default: return spec.count;
  }
}

Placement placement_of(const Spec& spec) {
  Placement place;
  place.shared = spec.in_place;
  if (!place.shared) return place;
  // At the other ranks a gather has no output and a scatter no input: nothing is shared there.
  if (spec.verb == Verb::gather || spec.verb == Verb::scatter) place.shared = spec.rank == spec.root;
  if (!place.shared) return place;
  if (joins(spec.verb)) place.input_begin = blocks_of(spec).offset(spec.rank);
  if (splits(spec.verb)) {
    place.output_begin = blocks_of(spec).offset(spec.rank);
  }
  place.shared_count = std::max(place.input_begin + input_count(spec), place.output_begin + output_count(spec));
  return place;
}

}  // namespace tutti
