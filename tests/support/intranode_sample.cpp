// intranode_sample.cpp: for the tests: one collective with its arrays on every rank, and what must come out.
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/intranode_sample.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/hash.hpp"
#include "kernel/kernel.hpp"
#include "plan/layout.hpp"

namespace tutti::intranode {
namespace {

constexpr std::size_t guard = 64;
constexpr std::byte filler{0xa5};

// Any bits for what is moved; small whole numbers for what is reduced, so that no result is a NaN with bits of its own.
void fill(std::byte* to, std::int64_t bytes, DType dtype, bool reduced, Random& random) {
  if (!reduced) {
    for (std::int64_t i = 0; i < bytes; ++i) to[i] = static_cast<std::byte>(random.below(256));
    return;
  }
  const auto element = static_cast<std::int64_t>(size_of(dtype));
  const DType real = is_complex(dtype) ? (element == 8 ? DType::float32 : DType::float64) : dtype;
  const auto width = static_cast<std::int64_t>(size_of(real));
  for (std::int64_t at = 0; at < bytes; at += width) {
    const auto number = static_cast<float>(random.below(7)) / 3.0f + 0.25f;
    if (is_floating(real)) {
      kernel::cast(real, to + at, DType::float32, &number, 1);
    } else {
      for (std::int64_t i = 0; i < width; ++i) to[at + i] = static_cast<std::byte>(random.below(256));
    }
    if (real == DType::boolean) to[at] = static_cast<std::byte>(random.below(2));
  }
}

}  // namespace

Sample::Sample(const SampleShape& shape, std::uint64_t sequence, Random& random)
    : shape_(shape), sequence_(sequence), element_(static_cast<std::int64_t>(size_of(shape.dtype))) {
  if (shape.uneven) draw_counts(random);
  if (shape.verb == Verb::permute) draw_pairs(random);
  ranks_.resize(static_cast<std::size_t>(shape.size));
  for (int r = 0; r < shape.size; ++r) {
    Rank& rank = ranks_[static_cast<std::size_t>(r)];
    rank.spec = {.verb = shape.verb, .rank = r, .size = shape.size, .root = shape.root, .count = shape.count};
    rank.spec.counts = counts_;
    rank.spec.pairs = pairs_;
    rank.spec.finish = shape.op == Op::Kind::mean && reduces(shape.verb);
    rank.spec.in_place = shape.in_place;
    if (!matrix_.empty()) {
      rank.spec.counts = matrix_[static_cast<std::size_t>(r)];
      for (const auto& row : matrix_) rank.spec.recv_counts.push_back(row[static_cast<std::size_t>(r)]);
    }
    lay_out(rank, random);
  }
  for (int r = 0; r < shape.size; ++r) expect(r);
}

void Sample::draw_counts(Random& random) {
  const auto draw = [&] { return random.chance(0.2) ? 0 : random.between(0, 2 * shape_.count); };
  const auto draw_row = [&] {
    std::vector<std::int64_t> row;
    for (int i = 0; i < shape_.size; ++i) row.push_back(draw());
    return row;
  };
  if (shape_.verb != Verb::all_to_all) counts_ = draw_row();
  for (int i = 0; shape_.verb == Verb::all_to_all && i < shape_.size; ++i) matrix_.push_back(draw_row());
}

void Sample::draw_pairs(Random& random) {
  std::vector<int> to;
  for (int i = 0; i < shape_.size; ++i) to.push_back(i);
  std::shuffle(to.begin(), to.end(), random);
  for (int from = 0; from < shape_.size; ++from) {
    if (random.chance(0.8)) pairs_.emplace_back(from, to[static_cast<std::size_t>(from)]);
  }
}

void Sample::lay_out(Rank& rank, Random& random) {
  rank.inputs = input_count(rank.spec);
  rank.outputs = output_count(rank.spec);
  const bool in_and_out = rank.spec.verb == Verb::broadcast || (rank.inputs > 0 && rank.outputs > 0);
  rank.spec.in_place = rank.spec.in_place && in_and_out;
  const Placement placement = placement_of(rank.spec);
  const auto bytes = [&](std::int64_t count) { return static_cast<std::size_t>(count * element_); };
  const std::size_t shift = random.chance(0.5) ? 0 : bytes(1);  // not always on a cache line
  rank.input = guard + shift;
  if (placement.shared) {
    const std::size_t begin = rank.input;
    rank.input = begin + bytes(placement.input_begin);
    rank.output = begin + bytes(placement.output_begin);
    rank.memory.assign(begin + bytes(placement.shared_count) + guard, filler);
  } else {
    rank.output = rank.input + bytes(rank.inputs) + guard;
    rank.memory.assign(rank.output + bytes(rank.outputs) + guard, filler);
  }
  fill(rank.memory.data() + rank.input, rank.inputs * element_, shape_.dtype, reduces(shape_.verb), random);
  rank.original = rank.memory;
}

void Sample::put(Rank& rank, std::int64_t at, const Rank& from, std::int64_t begin, std::int64_t count) {
  if (count == 0) return;
  std::memcpy(rank.expected.data() + rank.output + at * element_, from.original.data() + from.input + begin * element_,
              static_cast<std::size_t>(count * element_));
}

void Sample::expect_reduction(Rank& rank, int ranks, std::int64_t begin) {
  std::byte* to = rank.expected.data() + rank.output;
  if (ranks == 0) return kernel::fill_identity(shape_.op, shape_.dtype, to, rank.outputs);
  std::vector<const void*> inputs;
  for (int r = 0; r < ranks; ++r) {
    const Rank& from = ranks_[static_cast<std::size_t>(r)];
    inputs.push_back(from.original.data() + from.input + begin * element_);
  }
  kernel::reduce_many(shape_.op, shape_.dtype, to, inputs, rank.outputs);
  if (rank.spec.finish) kernel::divide(shape_.dtype, to, to, shape_.size, rank.outputs);
}

void Sample::expect(int index) {
  Rank& rank = ranks_[static_cast<std::size_t>(index)];
  rank.expected = rank.original;
  if (rank.outputs == 0) return;
  switch (shape_.verb) {
    case Verb::all_reduce:
    case Verb::reduce: return expect_reduction(rank, shape_.size, 0);
    case Verb::reduce_scatter: return expect_reduction(rank, shape_.size, blocks_of(rank.spec).offset(index));
    case Verb::scan: return expect_reduction(rank, index + 1, 0);
    case Verb::exscan: return expect_reduction(rank, index, 0);
    case Verb::permute:
      kernel::fill_zero(shape_.dtype, rank.expected.data() + rank.output, rank.outputs);
      for (const auto& [from, to] : pairs_) {
        if (to == index) put(rank, 0, ranks_[static_cast<std::size_t>(from)], 0, rank.outputs);
      }
      return;
    case Verb::broadcast: return put(rank, 0, ranks_[static_cast<std::size_t>(shape_.root)], 0, rank.outputs);
    case Verb::scatter: {
      const Rank& root = ranks_[static_cast<std::size_t>(shape_.root)];
      return put(rank, 0, root, blocks_of(root.spec).offset(index), rank.outputs);
    }
    default: break;  // all_gather, gather, all_to_all
  }
  std::int64_t at = 0;
  for (int peer = 0; peer < shape_.size; ++peer) {
    const Rank& from = ranks_[static_cast<std::size_t>(peer)];
    const bool personal = shape_.verb == Verb::all_to_all;
    const std::int64_t begin = personal ? blocks_of(from.spec).offset(index) : 0;
    const std::int64_t count = blocks_of(from.spec).count(personal ? index : peer);
    put(rank, at, from, begin, count);
    at += count;
  }
}

ExecutionStart Sample::start(int index) {
  Rank& rank = ranks_[static_cast<std::size_t>(index)];
  ExecutionStart start{.spec = &rank.spec, .dtype = shape_.dtype, .op = shape_.op};
  start.divisor = shape_.size;
  const bool in_place = placement_of(rank.spec).shared;
  start.input = rank.inputs > 0 || in_place ? rank.memory.data() + rank.input : nullptr;
  start.output = rank.outputs > 0 || in_place ? rank.memory.data() + rank.output : nullptr;
  start.signature = {.sequence = sequence_, .verb = shape_.verb, .dtype = shape_.dtype, .op = shape_.op};
  start.signature.root = shape_.root;
  start.signature.count = shape_.uneven ? 0 : shape_.count;
  start.phase = 2;
  return start;
}

std::string Sample::difference(int index) const {
  const Rank& rank = ranks_[static_cast<std::size_t>(index)];
  const auto [got, expected] = std::mismatch(rank.memory.begin(), rank.memory.end(), rank.expected.begin());
  if (got == rank.memory.end()) return {};
  const auto at = got - rank.memory.begin();
  return fmt::format("{}: rank {}: byte {} (output begins at {}) is {:#x}, not {:#x}", text(), index, at, rank.output,
                     static_cast<int>(*got), static_cast<int>(*expected));
}

std::string Sample::text() const {
  return fmt::format("#{} {} of {} × {}, {}{}{}, root {} of {}", sequence_, name_of(shape_.verb), shape_.count,
                     name_of(shape_.dtype), static_cast<int>(shape_.op), shape_.uneven ? ", uneven" : "",
                     shape_.in_place ? ", in place" : "", shape_.root, shape_.size);
}

}  // namespace tutti::intranode
