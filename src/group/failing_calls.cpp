// failing_calls.cpp: calls of which a transfer failed.
// SPDX-License-Identifier: Apache-2.0
#include "group/failing_calls.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <tutti/error.hpp>

#include "group/question.hpp"
#include "group/runtime.hpp"

namespace tutti {
namespace {

constexpr std::size_t asked_at_once_max = 128;  // all ranks may ask, of a group that is large

}  // namespace

// A transfer failed. Where a link broke, its peer is accused by now, and the control network decides which of the two is lost. Otherwise
// those whom it may have been with are asked: one that is gone will be found lost, and if all answer, something failed here.
bool FailingCalls::report(Operation& operation, TimePoint now) {
  Runtime& runtime = *state_.runtime;
  const std::vector<int>& peers = operation.failing_peers;
  if (!operation.does_not_fit) {
    const auto left =
        std::ranges::find_if(peers, [&](int peer) { return peer >= 0 && runtime.directory().has_left(peer); });
    if (left != peers.end()) return report_leaver(operation, *left);
    if (std::ranges::any_of(peers, [&](int peer) { return runtime.control().is_accused(peer); })) return false;
    if (const auto silent = not_known_to_live(operation); !silent.empty()) {
      ask_for_life(operation, silent, now);
      return false;
    }
  }
  const std::uint64_t sequence = operation.request.signature.sequence;
  const std::string text = text_of(operation);
  const auto unreachable =
      std::ranges::find_if(peers, [&](int peer) { return runtime.directory().is_unreachable(peer); });
  if (operation.does_not_fit) {
    failure_.propose({.kind = control::Cause::Kind::mismatch, .culprits = {}, .sequence = sequence, .text = text});
  } else if (unreachable != peers.end()) {
    failure_.propose(
        {.kind = control::Cause::Kind::lost, .culprits = {*unreachable}, .sequence = sequence, .text = text});
  } else if (operation.is_message()) {  // the peer is well: it failed here, and nothing else did
    running_.end(operation, std::make_exception_ptr(Aborted(fmt::format("{}: {}", state_.names.who(), text))));
  } else {
    failure_.propose_own(sequence, text);
  }
  return failure_.is_certain() || operation.ended();
}

std::string FailingCalls::text_of(const Operation& failing) const {
  return fmt::format("{} failed on rank {}: {}", state_.names.call(failing), state_.facts.rank, failing.failing);
}

bool FailingCalls::report_leaver(Operation& failing, int peer) {
  if (!state_.runtime->control().has_left(peer)) return false;  // its goodbye is on its way, over others
  if (!failing.is_message()) return agreement_.report_leaver(failing, peer);
  failure_.give_up(failing, state_.names.left_without(failing, peer));  // alone: those with other members go on
  return true;
}

std::vector<int> FailingCalls::not_known_to_live(const Operation& failing) const {
  std::vector<int> silent;
  for (const int peer : failing.failing_peers) {
    const int rank = state_.facts.rank_of(peer);
    if (rank < 0 || rank == state_.facts.rank || state_.runtime->directory().is_unreachable(peer)) continue;
    const bool has_answered = failing.first_question != 0 &&
                              state_.stalls.answered_question(rank, stall_key(failing), failing.first_question);
    if (!has_answered) silent.push_back(rank);
  }
  return silent;
}

void FailingCalls::ask_for_life(Operation& failing, std::span<const int> ranks, TimePoint now) {
  if (failing.first_question != 0 && now - failing.probed_at < question_interval) return;
  failing.probed_at = now;
  for (const int rank : ranks.first(std::min(ranks.size(), asked_at_once_max))) {
    const std::uint64_t question = ask(state_, rank, failing);
    if (failing.first_question == 0) failing.first_question = question;
  }
}

// Those that have not answered since: some of them may be lost, and nobody else has found out so far.
void FailingCalls::time_out(const Operation& failing) {
  const std::vector<int> silent = not_known_to_live(failing);
  std::vector<int> culprits;
  for (const int rank : silent) culprits.push_back(state_.world_rank(rank));
  const std::string who = silent.empty() ? "" : fmt::format("; {} did not answer", name_ranks(silent));
  failure_.propose(
      {.kind = control::Cause::Kind::timeout,
       .culprits = std::move(culprits),
       .sequence = failing.request.signature.sequence,
       .text = fmt::format("{}{} within the {} of the call", text_of(failing), who, format_duration(failing.timeout))});
}

}  // namespace tutti
