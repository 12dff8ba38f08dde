// side.cpp: one rank's arrays in one call.
// SPDX-License-Identifier: Apache-2.0
#include "side.hpp"

#include "element.hpp"

namespace tutti::sim {

Side::Side(const ScenarioCall& call, int rank, int size) : rank_(rank), message_(call.message) {
  if (!message_) {
    part_ = std::make_unique<contract::Part>(call.collective, rank, size);
    return;
  }
  array_ = std::make_unique<contract::GuardedArray>(message_->dtype, std::vector{message_->count}, message_->memory);
  std::byte value[16];
  for (std::int64_t i = 0; i < message_->count; ++i) {
    contract::write_contribution(message_->dtype, std::nullopt,
                                 {.seed = message_->seed, .rank = message_->from, .index = i}, value);
    if (sends()) {
      array_->set(i, value);
    } else {
      array_->expect(i, value);
    }
  }
}

GroupCore::Message Side::message(Duration timeout) {
  const int from = message_->from_anyone ? any_source : message_->from;
  return {.verb = sends() ? Verb::send : Verb::recv,
          .data = sends() ? array_->read_only_view() : array_->view(),
          .peer = sends() ? message_->to : from,
          .tag = message_->tag,
          .timeout = timeout,
          .is_exact = true};
}

std::optional<std::string> Side::difference() const { return part_ ? part_->difference() : array_->difference(); }

std::optional<std::string> Side::damage() const {
  if (part_) return part_->damage();
  return sends() ? array_->difference() : array_->overrun();
}

void Side::scribble(std::byte value) {
  if (part_) part_->scribble(value);
  if (array_) array_->scribble(value);
}

std::uint64_t Side::fingerprint() const { return part_ ? part_->fingerprint() : array_->fingerprint(); }

void spoil(Request& request, int size) {
  if (has_root(request.verb)) {
    request.root = size;
  } else if (request.verb == Verb::permute) {
    request.pairs = {{0, size}};
  } else {
    request.input = View();
  }
}

}  // namespace tutti::sim
