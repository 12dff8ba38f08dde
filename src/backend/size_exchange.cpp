// size_exchange.cpp: the phase before a call whose sizes a rank cannot know by itself.
// SPDX-License-Identifier: Apache-2.0
//
// broadcast and scatter: the root tells dtype, shape and sizes. all_gather and gather, uneven: everyone tells its size along
// the axis. all_to_all, uneven: everyone tells each peer how much it will get.
#include <fmt/format.h>

#include <algorithm>

#include <tutti/error.hpp>

#include "backend/collective.hpp"
#include "backend/native.hpp"

namespace tutti {
namespace {

constexpr std::uint32_t size_phase = 1;

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

std::byte* bytes_of(std::vector<std::int64_t>& words) { return reinterpret_cast<std::byte*>(words.data()); }

}  // namespace

void Collective::start_size_exchange() {
  const GroupFacts& facts = backend_.facts();
  stage_ = Stage::sizes;
  Spec& spec = size_spec_;
  spec = {.rank = facts.rank, .size = facts.size};
  const View& input = request_.input;
  const auto axis = static_cast<std::size_t>(request_.axis);
  switch (request_.verb) {
    case Verb::broadcast:
    case Verb::scatter:
      header_.assign(header_words(facts.size), 0);
      if (facts.rank == request_.root) {
        header_[0] = static_cast<std::int64_t>(input.dtype());
        header_[1] = input.axes();
        std::copy(input.shape().begin(), input.shape().end(), header_.begin() + 2);
        header_[kind_word] = request_.kind;
        if (request_.verb == Verb::scatter) {
          lay_out(request_, facts.rank, facts.size, layout_);
          header_[axis_word] = request_.axis;
          std::copy(layout_.input_sizes.begin(), layout_.input_sizes.end(), header_.begin() + axis_word + 1);
        }
      }
      spec.verb = Verb::broadcast;
      spec.root = request_.root;
      spec.count = static_cast<std::int64_t>(header_.size());
      spec.in_place = true;
      run(spec, DType::int64, bytes_of(header_), bytes_of(header_), size_phase);
      break;
    case Verb::all_to_all:
      header_ = request_.sizes;
      headers_.assign(static_cast<std::size_t>(facts.size), 0);
      spec.verb = Verb::all_to_all;
      spec.count = 1;
      run(spec, DType::int64, bytes_of(header_), bytes_of(headers_), size_phase);
      break;
    default:  // all_gather, gather
      header_.assign(1, input.shape()[axis]);
      headers_.assign(static_cast<std::size_t>(facts.size), 0);
      spec.verb = Verb::all_gather;
      spec.count = 1;
      run(spec, DType::int64, bytes_of(header_), bytes_of(headers_), size_phase);
  }
}

void Collective::take_sizes() {
  const GroupFacts& facts = backend_.facts();
  if (request_.verb == Verb::all_to_all) {
    request_.recv_sizes = headers_;
    return;
  }
  if (!root_gives(request_.verb)) {
    request_.sizes = headers_;
    return;
  }
  if (facts.rank == request_.root) return;
  const auto dtype = static_cast<DType>(header_[0]);
  std::vector<std::int64_t> shape(header_.begin() + 2, header_.begin() + 2 + header_[1]);
  if (request_.verb == Verb::scatter) {
    request_.sizes.assign(header_.begin() + axis_word + 1, header_.end());
    if (request_.stack) {
      shape.erase(shape.begin());
    } else {
      take_axis(request_, header_[axis_word], static_cast<int>(shape.size()));
      shape[static_cast<std::size_t>(request_.axis)] = request_.sizes[static_cast<std::size_t>(facts.rank)];
    }
  }
  request_.kind = static_cast<std::uint8_t>(header_[kind_word]);
  if (!request_.output.present() && request_.allocate) {
    request_.output = request_.allocate(dtype, shape, request_.kind);
  }
  if (request_.output.dtype() != dtype || !std::ranges::equal(request_.output.shape(), shape)) {
    throw Mismatch(fmt::format(
        "{} from rank {}: it sends {} of shape [{}], but the array given here to receive it is {} of another "
        "shape; pass nothing to have it made",
        name_of(request_.verb), request_.root, name_of(dtype), fmt::join(shape, ", "),
        name_of(request_.output.dtype())));
  }
}

}  // namespace tutti
