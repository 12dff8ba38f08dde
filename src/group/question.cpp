// question.cpp: asking another rank of a group how far it is with a call.
// SPDX-License-Identifier: Apache-2.0
#include "group/question.hpp"

#include "group/runtime.hpp"

namespace tutti {

std::uint64_t stall_key(const Operation& operation) {
  return operation.is_message() ? StallProbe::message_call : operation.request.signature.sequence;
}

std::uint64_t ask(GroupState& state, int rank, const Operation& operation) {
  if (rank == state.facts.rank) return no_question;
  Signature signature = operation.request.signature;
  signature.sequence = stall_key(operation);
  const auto bytes = encode(
      StallProbe{.group = state.facts.id, .epoch = state.facts.epoch, .signature = signature, .site = operation.site});
  state.stalls.note_asked(rank, signature.sequence, state.runtime->clock().now());
  return state.runtime->control().probe(state.world_rank(rank), bytes);
}

}  // namespace tutti
