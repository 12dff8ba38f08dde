// failure.cpp: what breaks a group, and how its members hear of it: mismatches, stalls, deadlines, lost and leaving peers.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include <tutti/error.hpp>

#include "base/environment.hpp"
#include "group/core.hpp"
#include "group/runtime.hpp"

namespace tutti {
namespace {

using namespace std::chrono_literals;

constexpr Duration verdict_wait = 500ms;  // a broken transfer waits this long for the control network's verdict
constexpr Duration leave_grace = 500ms;   // data of a rank that said goodbye may still be on its way

}  // namespace

TransportListener::Verdict GroupCore::arrived(int world_peer, const Envelope& envelope) {
  using Verdict = TransportListener::Verdict;
  if (envelope.epoch != facts_.epoch || broken_) return Verdict::drop;
  if (envelope.lane != 0) return Verdict::keep;
  const Signature& theirs = envelope.signature;
  if (theirs.sequence >= next_sequence_) {
    early_.try_emplace({theirs.sequence, world_peer}, theirs);
    return Verdict::keep;
  }
  const Signature& own = log_[theirs.sequence % log_length];
  if (own.sequence == theirs.sequence && own != theirs) {
    report_mismatch(own, theirs, world_peer);
    return Verdict::drop;
  }
  return running(theirs.sequence) != nullptr ? Verdict::keep : Verdict::drop;
}

void GroupCore::check_early(const Signature& own) {
  const auto end = early_.lower_bound({own.sequence + 1, -1});
  for (auto early = early_.lower_bound({own.sequence, -1}); early != end; ++early) {
    if (early->second != own) report_mismatch(own, early->second, early->first.second);
  }
  early_.erase(early_.begin(), end);
}

void GroupCore::report_mismatch(const Signature& own, const Signature& theirs, int world_peer) {
  // Both sides find the same mismatch: the text is the same on both, lower rank first.
  int low = facts_.rank, high = rank_of(world_peer);
  std::string low_call = describe(own), high_call = describe(theirs);
  const bool look_alike = low_call == high_call;
  if (const Operation* operation = running(own.sequence)) {
    if (look_alike) low_call += shape_text(*operation);
    low_call += at_site(operation->site);
  }
  high_call += at_site(stalls_.site_of(high, own.sequence));
  if (low > high) {
    std::swap(low, high);
    std::swap(low_call, high_call);
  }
  const std::string_view hint = look_alike ? " with another shape, axis, factor, sizes or pairs" : "";
  const std::string_view differentiation = (own.flags ^ theirs.flags) & Signature::differentiated
                                               ? " (one takes part in differentiation, the other does not)"
                                               : "";
  request_abort({.kind = control::Cause::Kind::mismatch,
                 .blamed = {},
                 .sequence = own.sequence,
                 .text = fmt::format(
                     "rank {} called {}, but rank {} called {}{}{}; every rank of a group must make the same calls in "
                     "the same order",
                     low, low_call, high, high_call, hint, differentiation)});
}

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
                 .blamed = {facts_.world_of[static_cast<std::size_t>(facts_.rank)]},
                 .sequence = next_sequence_,
                 .text = fmt::format("rank {} aborted the group: {}", facts_.rank, reason)});
}

void GroupCore::break_with(const control::Cause& cause) {
  if (broken_) return;
  broken_ = cause;
  std::vector<std::shared_ptr<Operation>> under_way = messages_.all();
  for (auto place = collectives_.first(); place < collectives_.end(); ++place)
    under_way.push_back(collectives_.at(place));
  for (const auto& operation : under_way) end(*operation, error_for(cause, operation.get()));
  early_.clear();
  refusals_.clear();
  runtime_->transport().forget(facts_.id, ~std::uint64_t{0});
}

// Most causes begin with the call: it is not said twice then.
std::exception_ptr GroupCore::error_for(const control::Cause& cause, const Operation* operation) const {
  const std::string call = operation == nullptr ? "the group is broken" : call_text(*operation);
  const bool is_said = operation != nullptr && cause.text.starts_with(call);
  const bool differs = operation != nullptr && cause.kind == control::Cause::Kind::mismatch;
  const std::string what =
      is_said ? fmt::format("{}: {}", who(), cause.text)
              : fmt::format("{}: {}{}: {}", who(), call, differs ? shape_text(*operation) : "", cause.text);
  switch (cause.kind) {
    case control::Cause::Kind::mismatch: return std::make_exception_ptr(Mismatch(what));
    case control::Cause::Kind::timeout: return std::make_exception_ptr(Timeout(what));
    case control::Cause::Kind::lost: {
      const int rank = cause.blamed.empty() ? -1 : cause.blamed.front();
      return std::make_exception_ptr(PeerLost(what, rank, runtime_->host_of(rank), cause.text));
    }
    case control::Cause::Kind::aborted:
    case control::Cause::Kind::refused: return std::make_exception_ptr(Aborted(what));
  }
  return std::make_exception_ptr(Aborted(what));
}

void GroupCore::member_left() {
  somebody_left_ = true;
  if (!collectives_.empty())
    collectives_.oldest()->probed_at = TimePoint{};  // look again soon: it may wait for the one that left
}

// A transfer failed. As a rule the control network says why; if not, the group breaks for what is known here.
bool GroupCore::report_doomed(const Operation& operation, TimePoint now) {
  const int peer = operation.doomed_peer;
  const std::uint64_t sequence = operation.request.signature.sequence;
  if (!operation.does_not_fit && peer >= 0 && runtime_->has_left(peer)) {
    report_left(peer, sequence);
    return true;
  }
  if (now - operation.doomed_at <= verdict_wait) return false;
  const std::string text = fmt::format("{} failed on rank {}: {}", call_text(operation), facts_.rank, operation.doomed);
  if (operation.does_not_fit) {
    request_abort({.kind = control::Cause::Kind::mismatch, .blamed = {}, .sequence = sequence, .text = text});
  } else if (runtime_->is_unreachable(peer)) {
    request_abort({.kind = control::Cause::Kind::lost, .blamed = {peer}, .sequence = sequence, .text = text});
  }
  return proposed_.has_value();
}

void GroupCore::probe(Operation& operation, TimePoint now, const Whereabouts& where) {
  for (const int rank : where.waiting_for) {
    const int world = facts_.world_of[static_cast<std::size_t>(rank)];
    if (runtime_->has_left(world) && now - runtime_->left_at(world) > leave_grace) {
      report_left(world, operation.request.signature.sequence);
      return;
    }
  }
  for (const int rank : stalls_.involved(where.waiting_for, stall_key(operation))) ask(rank, operation);
}

void GroupCore::report_left(int world_rank, std::uint64_t sequence) {
  request_abort(
      {.kind = control::Cause::Kind::lost,
       .blamed = {world_rank},
       .sequence = sequence,
       .text = fmt::format("{} left the job without taking part in the call", name_of_rank(rank_of(world_rank)))});
}

}  // namespace tutti
