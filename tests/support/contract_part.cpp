// contract_part.cpp: one rank's side of a case: its arrays, its request, and what it must get.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "base/hash.hpp"
#include "contract_case.hpp"
#include "element.hpp"

namespace tutti::contract {
namespace {

using Lengths = std::vector<std::int64_t>;

std::int64_t sum(const Lengths& lengths) { return std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}); }
std::int64_t sum_before(const Lengths& lengths, int rank) {
  return std::accumulate(lengths.begin(), lengths.begin() + rank, std::int64_t{0});
}

/// Calls use(index in the whole, index in the slice) for the elements of a slice along `axis`.
template <class Use>
void for_each_in_slice(const Lengths& shape, int axis, std::int64_t begin, std::int64_t length, Use&& use) {
  const auto at = static_cast<std::size_t>(axis);
  std::int64_t outer = 1, inner = 1;
  for (std::size_t i = 0; i < at; ++i) outer *= shape[i];
  for (std::size_t i = at + 1; i < shape.size(); ++i) inner *= shape[i];
  std::int64_t in_slice = 0;
  for (std::int64_t o = 0; o < outer; ++o) {
    const std::int64_t first = (o * shape[at] + begin) * inner;
    for (std::int64_t i = 0; i < length * inner; ++i) use(first + i, in_slice++);
  }
}

}  // namespace

Part::Part(const Case& call, int rank, int size)
    : call_(call), rank_(rank), size_(size), root_(static_cast<int>(call.root % static_cast<std::uint32_t>(size))) {
  if (reduces(call_.verb)) op_ = call_.op;
  axis_ = call_.shape == Shape::columns || call_.shape == Shape::middle ? 1 : 0;
  concat_axis_ = !call_.other_axis ? axis_ : call_.shape == Shape::middle ? 2 : 1 - axis_;
  if (call_.verb == Verb::barrier) return;
  make_arrays();
  set_expectation();
}

// Uneven patterns, by the seed: growing with the rank, all at one rank, every second rank empty, or any.
std::int64_t Part::block_length(int from, int to) const {
  const std::int64_t n = call_.length;
  if (call_.sizing == Sizing::even || call_.shape == Shape::stacked) return n;
  switch (call_.seed % 4) {
    case 0: return n + to + 2 * from;
    case 1: return to == static_cast<int>(call_.seed / 4 % static_cast<std::uint64_t>(size_)) ? n * size_ : 0;
    case 2: return (from + to) % 2 == 0 ? n : 0;
    default:
      return static_cast<std::int64_t>(scramble(call_.seed + std::uint64_t(from) * 64 + std::uint64_t(to)) %
                                       std::uint64_t(2 * n + 1));
  }
}

// Only an uneven all_to_all has lengths of its own on every rank.
Part::Lengths Part::lengths_sent_by(int rank) const {
  const int from = call_.verb == Verb::all_to_all && !call_.other_axis ? rank : 0;
  Lengths lengths;
  for (int to = 0; to < size_; ++to) lengths.push_back(block_length(from, to));
  return lengths;
}

Part::Lengths Part::lengths_received() const {
  if (call_.other_axis) return Lengths(static_cast<std::size_t>(size_), 3);  // every other axis has this length
  Lengths lengths;
  for (int from = 0; from < size_; ++from) lengths.push_back(lengths_sent_by(from)[static_cast<std::size_t>(rank_)]);
  return lengths;
}

Part::Lengths Part::shape_with(std::int64_t length) const {
  switch (call_.shape) {
    case Shape::line: return {length};
    case Shape::rows: return {length, 3};
    case Shape::columns: return {3, length};
    case Shape::middle: return {2, length, 3};
    case Shape::stacked: break;
  }
  return {length, call_.length, 2};  // `length` entries of one rank's array
}

Part::Lengths Part::input_shape(int rank) const {
  const bool stacked = call_.shape == Shape::stacked;
  if (joins(call_.verb)) return shape_with(stacked ? 1 : lengths_sent_by(0)[static_cast<std::size_t>(rank)]);
  if (!has_blocks(call_.verb)) return shape_with(call_.length);
  return shape_with(stacked ? size_ : sum(lengths_sent_by(rank)));
}

Part::Lengths Part::output_shape() const {
  const bool stacked = call_.shape == Shape::stacked;
  const auto me = static_cast<std::size_t>(rank_);
  if (joins(call_.verb)) return shape_with(stacked ? size_ : sum(lengths_sent_by(0)));
  if (splits(call_.verb)) return shape_with(stacked ? 1 : lengths_sent_by(0)[me]);
  if (call_.verb != Verb::all_to_all) return shape_with(call_.length);
  Lengths shape = input_shape(rank_);
  shape[static_cast<std::size_t>(axis_)] = lengths_sent_by(rank_)[me];
  shape[static_cast<std::size_t>(concat_axis_)] = sum(lengths_received());
  return shape;
}

bool Part::has_input() const {
  return (call_.verb != Verb::broadcast && call_.verb != Verb::scatter) || rank_ == root_;
}
bool Part::has_output() const { return (call_.verb != Verb::reduce && call_.verb != Verb::gather) || rank_ == root_; }

Pairs Part::pairs() const {
  // A rotation, of which some pairs may be missing; the seed decides.
  Pairs result;
  const int shift = static_cast<int>(call_.seed % static_cast<std::uint64_t>(size_));
  for (int from = 0; from < size_; ++from) {
    if ((call_.seed >> 8 & 1) == 0 || (call_.seed >> (16 + from % 32) & 1) == 0)
      result.emplace_back(from, (from + shift) % size_);
  }
  return result;
}

void Part::place_in(GuardedArray& array, std::int64_t first_index, std::int64_t count) {
  std::byte value[16];
  for (std::int64_t i = 0; i < count; ++i) {
    write_contribution(call_.dtype, op_, {.seed = call_.seed, .rank = rank_, .index = i}, value);
    array.set(first_index + i, value);
  }
}

void Part::make_arrays() {
  const auto unstacked = [&](Lengths shape, bool one_entry) {
    if (call_.shape == Shape::stacked && one_entry) shape.erase(shape.begin());
    return shape;
  };
  // In place, the larger of the two arrays holds the other one.
  const bool output_holds_input = call_.in_place && !splits(call_.verb) && has_output();
  const bool input_holds_output = call_.in_place && splits(call_.verb) && has_input();
  if (has_output() && !input_holds_output) {
    output_ =
        std::make_unique<GuardedArray>(call_.dtype, unstacked(output_shape(), splits(call_.verb)), call_.output_memory);
  }
  if (!has_input()) return;
  const std::int64_t count = elements_of(input_shape(rank_));
  if (output_holds_input) {
    const Lengths before = joins(call_.verb) ? lengths_sent_by(0) : Lengths();
    const std::int64_t begin = before.empty() ? 0 : sum_before(before, rank_);
    place_in(*output_, begin * elements_of(shape_with(1)), count);
    return;
  }
  input_ =
      std::make_unique<GuardedArray>(call_.dtype, unstacked(input_shape(rank_), joins(call_.verb)), call_.input_memory);
  place_in(*input_, 0, count);
}

void Part::expect_moved(std::int64_t output_index, int from, std::int64_t input_index) {
  std::byte value[16];
  write_contribution(call_.dtype, op_, {.seed = call_.seed, .rank = from, .index = input_index}, value);
  output_->expect(output_index, value);
}

void Part::expect_reduction(std::int64_t output_index, std::int64_t input_index, int ranks) {
  const std::size_t each = size_of(call_.dtype);
  contributions_.resize(each * static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    write_contribution(call_.dtype, op_, {.seed = call_.seed, .rank = rank, .index = input_index},
                       contributions_.data() + each * static_cast<std::size_t>(rank));
  }
  std::byte value[16];
  write_reduction(call_.dtype, *op_, contributions_, value);
  (output_ ? *output_ : *input_).expect(output_index, value);
}

void Part::set_expectation() {
  if (!has_output()) return;
  const std::int64_t count = elements_of(output_shape());
  const auto every = [&](auto&& expect) {
    for (std::int64_t i = 0; i < count; ++i) expect(i);
  };
  switch (call_.verb) {
    case Verb::all_reduce:
    case Verb::reduce: return every([&](std::int64_t i) { expect_reduction(i, i, size_); });
    case Verb::scan: return every([&](std::int64_t i) { expect_reduction(i, i, rank_ + 1); });
    case Verb::exscan: return every([&](std::int64_t i) { expect_reduction(i, i, rank_); });
    case Verb::broadcast: return every([&](std::int64_t i) { expect_moved(i, root_, i); });
    case Verb::permute: return expect_permuted();
    case Verb::all_to_all: return expect_exchanged();
    default: return joins(call_.verb) ? expect_joined() : expect_split();
  }
}

void Part::expect_joined() {
  const Lengths shape = output_shape();
  const Lengths lengths =
      call_.shape == Shape::stacked ? Lengths(static_cast<std::size_t>(size_), 1) : lengths_sent_by(0);
  for (int from = 0; from < size_; ++from) {
    for_each_in_slice(shape, axis_, sum_before(lengths, from), lengths[static_cast<std::size_t>(from)],
                      [&](std::int64_t whole, std::int64_t slice) { expect_moved(whole, from, slice); });
  }
}

void Part::expect_split() {
  const Lengths shape = input_shape(rank_);
  const Lengths lengths =
      call_.shape == Shape::stacked ? Lengths(static_cast<std::size_t>(size_), 1) : lengths_sent_by(0);
  for_each_in_slice(shape, axis_, sum_before(lengths, rank_), lengths[static_cast<std::size_t>(rank_)],
                    [&](std::int64_t whole, std::int64_t slice) {
                      if (op_) expect_reduction(output_ ? slice : whole, whole, size_);
                      else if (output_) expect_moved(slice, root_, whole);
                    });
}

void Part::expect_exchanged() {
  const Lengths shape = output_shape(), received = lengths_received();
  for (int from = 0; from < size_; ++from) {
    const Lengths sent = lengths_sent_by(from);
    Lengths origins;  // where in the sender's array the block's elements come from
    for_each_in_slice(input_shape(from), axis_, sum_before(sent, rank_), sent[static_cast<std::size_t>(rank_)],
                      [&](std::int64_t whole, std::int64_t) { origins.push_back(whole); });
    for_each_in_slice(shape, concat_axis_, sum_before(received, from), received[static_cast<std::size_t>(from)],
                      [&](std::int64_t whole, std::int64_t slice) {
                        expect_moved(whole, from, origins[static_cast<std::size_t>(slice)]);
                      });
  }
}

void Part::expect_permuted() {
  const std::byte zero[16] = {};
  int source = -1;
  for (const auto& [from, to] : pairs()) source = to == rank_ ? from : source;
  for (std::int64_t i = 0; i < output_->count(); ++i) {
    if (source < 0) output_->expect(i, zero);
    else expect_moved(i, source, i);
  }
}

}  // namespace tutti::contract
