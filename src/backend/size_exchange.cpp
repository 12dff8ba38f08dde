// size_exchange.cpp: the phase before a call whose sizes a rank cannot know by itself.
// SPDX-License-Identifier: Apache-2.0
#include "backend/size_exchange.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include <tutti/error.hpp>

#include "backend/block_layout.hpp"
#include "backend/lowering.hpp"

namespace tutti {
namespace {

/// What the root says of its array: dtype, number of axes, shape, kind, and for scatter the axis and the sizes along it.
constexpr std::size_t kind_word = 2 + View::max_axes;
constexpr std::size_t axis_word = kind_word + 1;
constexpr std::size_t header_words(int size) { return axis_word + 1 + static_cast<std::size_t>(size); }

/// Off the root an axis counted from the end becomes a number only now, and can be compared with the root's.
void take_axis(Request& request, std::int64_t axis_of_root, int axes) {
  const int axis = request.axis < 0 ? request.axis + axes : request.axis;
  if (axis != axis_of_root) {
    throw Mismatch(fmt::format("{} from rank {}: it splits axis {} of {}, but this rank asked for axis {}",
                               name_of(request.verb), request.root, axis_of_root, axes, request.axis));
  }
  request.axis = axis;
}

}  // namespace

SizeExchange::SizeExchange(const GroupFacts& facts, Executor& executor, const Request& request)
    : facts_(facts), verb_(request.verb) {
  const auto ranks = static_cast<std::size_t>(facts.size);
  ExecutionSpec what{.spec = {.rank = facts.rank, .size = facts.size},
                     .dtype = DType::int64,
                     .signature = request.signature,
                     .phase = size_phase};
  if (root_tells()) {
    sent_.resize(header_words(facts.size));
    what.spec.verb = Verb::broadcast;
    what.spec.root = request.root;
    what.spec.count = static_cast<std::int64_t>(sent_.size());
    what.spec.in_place = true;
  } else {
    const bool tells_each_its_own = verb_ == Verb::all_to_all;
    what.spec.verb = tells_each_its_own ? Verb::all_to_all : Verb::all_gather;
    what.spec.count = 1;
    sent_.resize(tells_each_its_own ? ranks : 1);
    received_.resize(ranks);
  }
  call_ = executor.prepare(what);
}

bool SizeExchange::start(const Request& request, const Signature& signature) {
  if (root_tells()) {
    fill_header(request);
  } else if (verb_ == Verb::all_to_all) {
    sent_ = request.sizes;
  } else {
    sent_[0] = request.input.shape()[static_cast<std::size_t>(request.axis)];
  }
  std::vector<std::int64_t>& received = root_tells() ? sent_ : received_;
  return call_->start({.input = reinterpret_cast<const std::byte*>(sent_.data()),
                       .output = reinterpret_cast<std::byte*>(received.data())},
                      signature);
}

void SizeExchange::fill_header(const Request& request) {
  std::ranges::fill(sent_, 0);
  if (facts_.rank != request.root) return;
  const View& input = request.input;
  sent_[0] = static_cast<std::int64_t>(input.dtype());
  sent_[1] = input.axes();
  std::ranges::copy(input.shape(), sent_.begin() + 2);
  sent_[kind_word] = request.kind;
  if (verb_ != Verb::scatter) return;
  BlockLayout layout;
  lay_out(request, facts_.rank, facts_.size, layout);
  sent_[axis_word] = request.axis;
  std::ranges::copy(layout.input_sizes, sent_.begin() + axis_word + 1);
}

void SizeExchange::take_sizes(Request& request) const {
  if (root_tells()) {
    if (facts_.rank != request.root) take_from_root(request);
  } else if (verb_ == Verb::all_to_all) {
    if (!request.recv_sizes.empty()) compare(request.recv_sizes);
    request.recv_sizes = received_;
  } else {
    request.sizes = received_;
  }
}

void SizeExchange::compare(std::span<const std::int64_t> expected) const {
  const auto [mine, theirs] = std::ranges::mismatch(expected, received_);
  if (mine == expected.end()) return;
  throw Mismatch(fmt::format(
      "{}: rank {} sends rank {} a part of length {}, but rank {} expects one of length {}; recv_sizes are what the "
      "others' split_sizes say for this rank",
      name_of(verb_), mine - expected.begin(), facts_.rank, *theirs, facts_.rank, *mine));
}

void SizeExchange::take_from_root(Request& request) const {
  const auto dtype = static_cast<DType>(sent_[0]);
  std::vector<std::int64_t> shape(sent_.begin() + 2, sent_.begin() + 2 + sent_[1]);
  if (verb_ == Verb::scatter) {
    request.sizes.assign(sent_.begin() + axis_word + 1, sent_.end());
    if (request.stack) {
      shape.erase(shape.begin());
    } else {
      take_axis(request, sent_[axis_word], static_cast<int>(shape.size()));
      shape[static_cast<std::size_t>(request.axis)] = request.sizes[static_cast<std::size_t>(facts_.rank)];
    }
  }
  request.kind = static_cast<std::uint8_t>(sent_[kind_word]);
  if (!request.output.present() && request.allocate) request.output = request.allocate(dtype, shape, request.kind);
  if (request.output.dtype() != dtype || !std::ranges::equal(request.output.shape(), shape)) {
    throw Mismatch(fmt::format(
        "{} from rank {}: it sends {} of shape [{}], but the array given here to receive it is {} of shape [{}]; pass "
        "nothing to have it made",
        name_of(verb_), request.root, name_of(dtype), fmt::join(shape, ", "), name_of(request.output.dtype()),
        fmt::join(request.output.shape(), ", ")));
  }
}

}  // namespace tutti
