// contract_request.cpp: the request that one rank makes for a case.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include <tutti/error.hpp>

#include "base/hash.hpp"
#include "contract_case.hpp"

namespace tutti::contract {

Request Part::request() {
  Request request{.verb = call_.verb, .op = call_.op, .root = root_};
  if (call_.verb == Verb::barrier) return request;
  if (call_.verb == Verb::permute) request.pairs = pairs();
  if (has_blocks(call_.verb)) {
    request.axis = axis_;
    request.concat_axis = concat_axis_;
    request.stack = call_.shape == Shape::stacked;
  }
  set_sizes(request);
  set_views(request);
  return request;
}

void Part::set_sizes(Request& request) const {
  const bool exchange = call_.verb == Verb::all_to_all;
  if (call_.sizing == Sizing::even) return;
  if (call_.sizing == Sizing::given) {
    request.sizes = lengths_sent_by(rank_);
    if (exchange && !call_.other_axis) request.recv_sizes = lengths_received();
  } else if (exchange) {
    request.sizes = lengths_sent_by(rank_);
  } else if (joins(call_.verb)) {
    request.uneven = true;
  } else {  // broadcast, scatter: the root tells
    request.sizes_follow = true;
    if (call_.verb == Verb::scatter && rank_ == root_ && call_.shape != Shape::stacked)
      request.sizes = lengths_sent_by(0);
  }
}

void Part::set_views(Request& request) {
  if (input_) request.input = call_.in_place ? input_->view() : input_->read_only_view();
  if (output_) request.output = output_->view();
  const auto block_of = [&](GuardedArray& whole) {
    const Lengths lengths = lengths_sent_by(0);
    const auto begin = std::accumulate(lengths.begin(), lengths.begin() + rank_, std::int64_t{0});
    return whole.view().slice(axis_, begin, lengths[static_cast<std::size_t>(rank_)]);
  };
  if (has_input() && !input_) request.input = joins(call_.verb) ? block_of(*output_) : output_->view();
  if (has_output() && !output_) request.output = block_of(*input_);

  // Where sizes are exchanged, the call may also allocate the array.
  const bool knows_nothing = call_.verb == Verb::broadcast || call_.verb == Verb::scatter;
  if (call_.sizing != Sizing::exchanged || !output_ || (!knows_nothing && call_.seed % 2 == 0)) return;
  request.output = View();
  request.allocate = [this](DType dtype, std::span<const std::int64_t> shape, std::uint8_t) {
    if (dtype != output_->dtype() || !std::ranges::equal(shape, output_->shape())) {
      throw Error(fmt::format("asked for an array of shape [{}] instead of [{}]", fmt::join(shape, ", "),
                              fmt::join(output_->shape(), ", ")));
    }
    return output_->view();
  };
}

std::optional<std::string> Part::difference() const {
  for (const auto& [array, name] : {std::pair(output_.get(), "output"), std::pair(input_.get(), "input")}) {
    if (array == nullptr) continue;
    if (const auto difference = array->difference()) return fmt::format("{}: {}", name, *difference);
  }
  return std::nullopt;
}

std::optional<std::string> Part::damage() const {
  if (output_) {
    if (const auto overrun = output_->overrun()) return fmt::format("output: {}", *overrun);
  }
  if (!input_) return std::nullopt;
  const auto wrong = call_.in_place ? input_->overrun() : input_->difference();
  return wrong ? std::optional(fmt::format("input: {}", *wrong)) : std::nullopt;
}

void Part::scribble(std::byte value) {
  for (GuardedArray* const array : {input_.get(), output_.get()}) {
    if (array != nullptr) array->scribble(value);
  }
}

std::uint64_t Part::fingerprint() const {
  Hash hash;
  for (const GuardedArray* const array : {input_.get(), output_.get()})
    hash.add(array != nullptr ? array->fingerprint() : 0);
  return hash.value();
}

}  // namespace tutti::contract
