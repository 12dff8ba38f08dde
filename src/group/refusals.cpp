// refusals.cpp: calls that a member of a group does not take part in.
// SPDX-License-Identifier: Apache-2.0
#include "group/refusals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <tutti/error.hpp>

#include "group/runtime.hpp"

namespace tutti {

void Refusals::refuse(const std::string& text) {
  const std::uint64_t sequence = state_.calls.refuse();
  early_.erase(sequence);
  latest_ = sequence;
  forget_arrived();
  if (state_.facts.size > 1) state_.runtime->control().refuse(state_.facts.id, state_.facts.epoch, sequence, text);
}

void Refusals::take(std::uint64_t sequence, int world_rank, std::string_view text) {
  if (sequence < state_.calls.next()) state_.calls.take_out(sequence);
  if (Operation* const operation = running_.find(sequence)) {
    const std::string message = fmt::format(
        "{}: {}: {} refused its part of the call: {}. Nothing was changed there; the group stays usable",
        state_.names.who(), state_.names.call(*operation), state_.names.rank(state_.facts.rank_of(world_rank)), text);
    latest_ = std::max(sequence, latest_.value_or(0));
    running_.end(*operation, std::make_exception_ptr(Aborted(message)));
  } else if (sequence >= state_.calls.next()) {
    early_.try_emplace(sequence, Refusal{world_rank, std::string(text)});
  }
}

void Refusals::apply_to(const Operation& operation) {
  const std::uint64_t sequence = operation.request.signature.sequence;
  if (const auto refusal = early_.extract(sequence)) take(sequence, refusal.mapped().world_rank, refusal.mapped().text);
}

void Refusals::forget_arrived() {
  if (!latest_) return;
  const CallQueue& calls = running_.collectives();
  if (!calls.empty() && calls.oldest()->request.signature.sequence <= *latest_) return;
  state_.runtime->transport().forget(state_.facts.id, *latest_);
  latest_.reset();
}

}  // namespace tutti
