// failure.cpp: what breaks a group, and how its members hear of it: mismatches, stalls, deadlines, lost and leaving peers.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <new>

#include <tutti/error.hpp>

#include "base/environment.hpp"
#include "base/printable.hpp"
#include "group/core.hpp"
#include "group/runtime.hpp"

namespace tutti {

using namespace std::chrono_literals;

void GroupCore::request_abort(const control::Cause& cause) {
  if (broken_ || proposed_) return;
  proposed_ = cause;
  proposed_at_ = runtime_->clock().now();
  if (facts_.size == 1) {
    break_with(cause);
  } else {
    runtime_->control().abort(facts_.id, facts_.epoch, cause);
  }
}

void GroupCore::abort(std::string_view reason) {
  const auto guard = runtime_->lock();
  check_usable();
  request_abort({.kind = control::Cause::Kind::aborted,
                 .culprits = {facts_.world_of[static_cast<std::size_t>(facts_.rank)]},
                 .sequence = calls_.next(),
                 .text = fmt::format("rank {} aborted the group: {}", facts_.rank, reason)});
}

std::vector<std::shared_ptr<Operation>> GroupCore::under_way() const {
  auto all = messages_.all();
  for (auto place = collectives_.first(); place < collectives_.end(); ++place) all.push_back(collectives_.at(place));
  return all;
}

void GroupCore::break_with(const control::Cause& cause) {
  if (broken_) return;
  broken_ = cause;
  broken_->text = printable_text(cause.text, "\n\t");  // it may be another rank's, and people will read it
  for (const auto& operation : under_way()) end(*operation, error_for(*broken_, operation.get()));
  unexpected_signatures_.clear();
  refusals_.clear();
  runtime_->transport().forget(facts_.id, ~std::uint64_t{0});
}

// Most causes begin with the call: it is not said twice then.
std::exception_ptr GroupCore::error_for(const control::Cause& cause, const Operation* operation) const {
  const std::string call = operation == nullptr ? "the group is broken" : call_text(*operation);
  const bool is_said = operation != nullptr && cause.text.starts_with(call);
  const std::string what =
      is_said ? fmt::format("{}: {}", who(), cause.text) : fmt::format("{}: {}: {}", who(), call, cause.text);
  switch (cause.kind) {
    case control::Cause::Kind::mismatch: return std::make_exception_ptr(Mismatch(what));
    case control::Cause::Kind::timeout: return std::make_exception_ptr(Timeout(what));
    case control::Cause::Kind::lost: {
      const int rank = cause.culprits.empty() ? -1 : cause.culprits.front();
      return std::make_exception_ptr(PeerLost(what, rank, runtime_->host_of(rank), cause.text));
    }
    case control::Cause::Kind::aborted:
    case control::Cause::Kind::refused: return std::make_exception_ptr(Aborted(what));
  }
  return std::make_exception_ptr(Aborted(what));
}

void GroupCore::interrupt(Operation& operation) {
  const auto guard = runtime_->lock();
  interrupt_locked(operation);
}

void GroupCore::interrupt_locked(Operation& operation) {
  const bool is_withdrawn = operation.is_message() && give_message_back(operation);
  if (operation.ended()) return;
  const std::string text = fmt::format("rank {} was interrupted in {}", facts_.rank, call_text(operation));
  if (!is_withdrawn) {
    request_abort({.kind = control::Cause::Kind::aborted,
                   .culprits = {facts_.world_of[static_cast<std::size_t>(facts_.rank)]},
                   .sequence = operation.request.signature.sequence,
                   .text = text});
  }
  if (!operation.ended()) end(operation, std::make_exception_ptr(Aborted(fmt::format("{}: {}", who(), text))));
}

// False if the message that was arriving is lost, for want of memory.
bool GroupCore::give_message_back(Operation& operation) {
  const Transfer::State state = operation.transfer.state;
  const bool may_have_one = state == Transfer::State::pending || state == Transfer::State::done;
  if (operation.request.verb != Verb::recv || !may_have_one || broken_) return true;
  try {
    runtime_->transport().give_back(operation.transfer);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void GroupCore::interrupt_all() {
  for (const auto& operation : under_way()) {
    if (!operation->ended()) interrupt_locked(*operation);
  }
}

// Nobody can wait for them any more, and what they would receive is of no use to a rank that leaves.
void GroupCore::withdraw_receives() {
  const auto all = messages_.all();
  for (const auto& operation : all) {
    if (operation->request.verb == Verb::recv && !operation->ended())
      end(*operation, std::make_exception_ptr(
                          Aborted(fmt::format("{}: the receive was withdrawn: this process leaves the job", who()))));
  }
}

// A transfer failed. Where a link broke, its peer is accused by now, and the control network decides which of the two is lost. Otherwise the
// peer is asked: one that is gone will be found lost, and if it answers, something failed here.
bool GroupCore::report_failing(Operation& operation, TimePoint now) {
  const int peer = operation.failing_peer;
  const std::uint64_t sequence = operation.request.signature.sequence;
  if (!operation.does_not_fit && peer >= 0 && runtime_->has_left(peer)) {
    if (!runtime_->control().has_left(peer)) return false;  // its goodbye is on its way, over others
    const auto position = runtime_->position_when_leaving(peer, facts_.id);
    if (!operation.is_message() && position && position->calls > sequence) {
      report_other_call(operation, *position);
    } else {
      report_left(peer, sequence);
    }
    return true;
  }
  if (!operation.does_not_fit && (runtime_->control().is_accused(peer) || !is_known_to_live(operation, now)))
    return false;
  const std::string text =
      fmt::format("{} failed on rank {}: {}", call_text(operation), facts_.rank, operation.failing);
  if (operation.does_not_fit) {
    request_abort({.kind = control::Cause::Kind::mismatch, .culprits = {}, .sequence = sequence, .text = text});
  } else if (runtime_->is_unreachable(peer)) {
    request_abort({.kind = control::Cause::Kind::lost, .culprits = {peer}, .sequence = sequence, .text = text});
  } else {  // the peer is well: it failed here
    request_abort({.kind = control::Cause::Kind::aborted,
                   .culprits = {facts_.world_of[static_cast<std::size_t>(facts_.rank)]},
                   .sequence = sequence,
                   .text = text});
  }
  return proposed_.has_value() || broken_.has_value();
}

bool GroupCore::is_known_to_live(Operation& failing, TimePoint now) {
  constexpr Duration ask_again = 100ms;
  const int rank = rank_of(failing.failing_peer);
  if (rank < 0 || rank == facts_.rank || runtime_->is_unreachable(failing.failing_peer)) return true;
  if (stalls_.answered(rank, stall_key(failing), failing.failing_since)) return true;
  if (now - failing.probed_at >= ask_again) {
    failing.probed_at = now;
    ask(rank, failing);
  }
  return false;
}

void GroupCore::probe(Operation& operation, const Progress& where, std::size_t limit) {
  for (const int rank : where.waiting_for) {
    const int world = facts_.world_of[static_cast<std::size_t>(rank)];
    if (!runtime_->has_left(world)) continue;
    if (operation.is_message()) {
      // The transport knows when nothing more comes from it, if it has a link to it.
      runtime_->transport().attach(world);
      continue;
    }
    const auto position = runtime_->position_when_leaving(world, facts_.id);
    if (position && operation.request.signature.sequence >= position->calls) {
      report_left(world, operation.request.signature.sequence);
      return;
    }
  }
  std::vector<int> asked = where.waiting_for;
  if (follows_chains(operation)) asked = stalls_.involved(asked, stall_key(operation));
  ask_some(asked, operation, limit);
}

// Everything that it sent has arrived, and it says that it took part in the call of this number.
void GroupCore::report_other_call(const Operation& failing, const control::Position& theirs) {
  request_abort(
      {.kind = control::Cause::Kind::mismatch,
       .culprits = {},
       .sequence = failing.request.signature.sequence,
       .text = fmt::format("rank {} called {}, but {} made another call in its place: it has left the job after "
                           "{} calls of the group, and did not send what belongs to this one ({}); every rank of a "
                           "group must make the same calls in the same order",
                           facts_.rank, call_text(failing), name_of_rank(rank_of(failing.failing_peer)), theirs.calls,
                           failing.failing)});
}

void GroupCore::report_left(int world_rank, std::uint64_t sequence) {
  const Signature* const missed = calls_.find(sequence);
  const std::string call = missed != nullptr ? "the call " + describe(*missed) : "the call";
  request_abort({.kind = control::Cause::Kind::lost,
                 .culprits = {world_rank},
                 .sequence = sequence,
                 .text = fmt::format(
                     "{} left the job without taking part in {}; every rank of a group must make the same calls in "
                     "the same order",
                     name_of_rank(rank_of(world_rank)), call)});
}

}  // namespace tutti
