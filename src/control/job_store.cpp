// job_store.cpp: requests that are repeated until they are answered, and take effect once.
// SPDX-License-Identifier: Apache-2.0
#include "control/job_store.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace tutti::control {

namespace {

using Kind = store::Request::Kind;

StoreAsked to_message(const store::Request& request, std::uint32_t slot) {
  return {.kind = request.kind,
          .id = request.id,
          .slot = slot,
          .key = request.key,
          .has_expected = request.expected.has_value(),
          .expected = request.expected.value_or(std::string()),
          .value = request.value,
          .amount = request.amount};
}

store::Request to_request(const StoreAsked& message) {
  return {.kind = message.kind,
          .id = message.id,
          .key = message.key,
          .expected = message.has_expected ? std::optional(message.expected) : std::nullopt,
          .value = message.value,
          .amount = message.amount};
}

StoreAnswered to_message(const store::Reply& reply) {
  return {
      .kind = reply.kind, .id = reply.id, .value = reply.value ? *reply.value : std::string(), .number = reply.number};
}

store::Reply to_reply(const StoreAnswered& message) {
  return {.kind = message.kind,
          .id = message.id,
          .value = std::make_shared<const std::string>(message.value),
          .number = message.number};
}

}  // namespace

// ---- the rank that asks

std::shared_ptr<const JobStore::Asked> JobStore::ask(TimePoint now, store::Request request) {
  request.id = next_id_++;
  auto asked = std::make_shared<Asked>(Asked{.request = std::move(request), .reply = {}});
  if (!outside_.may_answer(keeper)) {
    asked->is_lost = true;
    return asked;
  }
  const std::uint32_t slot = free_slot();
  Pending& pending = pending_[asked->request.id] = {.asked = asked, .slot = slot, .wait = retry_, .repeat_at = {}};
  send(pending, now);
  return asked;
}

void JobStore::send(Pending& pending, TimePoint now) {
  pending.repeat_at = now + pending.wait;
  pending.wait = std::min(2 * pending.wait, 5 * retry_);
  const store::Request request = pending.asked->request;  // an answer may come at once, if this rank is the keeper
  outside_.send(keeper, to_message(request, pending.slot));
}

std::uint32_t JobStore::free_slot() const {
  std::vector<bool> taken(pending_.size());
  for (const auto& [id, pending] : pending_) {
    if (pending.slot < taken.size()) taken[pending.slot] = true;
  }
  return static_cast<std::uint32_t>(std::ranges::find(taken, false) - taken.begin());
}

void JobStore::give_up(const Asked& asked) {
  const auto found = pending_.find(asked.request.id);
  if (found == pending_.end()) return;
  const std::uint32_t slot = found->second.slot;
  pending_.erase(found);
  if (outside_.may_answer(keeper))
    outside_.send(keeper, to_message({.kind = Kind::cancel, .id = asked.request.id}, slot));
}

void JobStore::on_answered(int from, const StoreAnswered& message) {
  const auto found = pending_.find(message.id);
  if (from != keeper || found == pending_.end()) return;  // an answer to a repetition, or to what was given up
  if (message.waits) return;
  found->second.asked->reply = to_reply(message);
  pending_.erase(found);
}

bool JobStore::poll(TimePoint now) {
  bool moved = false;
  std::vector<std::uint64_t> due;
  for (const auto& [id, pending] : pending_) {
    if (now >= pending.repeat_at) due.push_back(id);
  }
  for (const std::uint64_t id : due) {
    const auto found = pending_.find(id);
    if (found == pending_.end()) continue;  // the keeper is this rank, and has answered
    send(found->second, now);
    moved = true;
  }
  return moved;
}

TimePoint JobStore::next_timer() const {
  TimePoint next = TimePoint::max();
  for (const auto& [id, pending] : pending_) next = std::min(next, pending.repeat_at);
  return next;
}

// ---- the keeper

void JobStore::on_asked(int from, const StoreAsked& message) {
  if (rank_ != keeper) return;
  Served& served = served_[from][message.slot];
  if (message.id < served.id) return;  // a late repetition: its rank has the answer, or does not wait for it
  if (message.kind == Kind::cancel || (message.id > served.id && served.answer.waits)) {
    service_.handle(static_cast<std::uint64_t>(from), {.kind = Kind::cancel, .id = served.id});
    served.answer.waits = false;
  }
  if (message.kind == Kind::cancel) {
    served.id = message.id;
    return;
  }
  if (message.id > served.id) {
    serve(from, to_request(message), served);
  } else {
    outside_.send(from, served.answer);
  }
}

// A change answers its own request, and those of all ranks that wait for the key, perhaps the same rank's.
void JobStore::serve(int from, store::Request request, Served& served) {
  served = {.id = request.id, .answer = {.waits = true, .id = request.id}};
  const auto answers = service_.handle(static_cast<std::uint64_t>(from), std::move(request));
  if (answers.empty()) outside_.send(from, served.answer);
  for (const auto& [client, reply] : answers) {
    const int rank = static_cast<int>(client);
    for (auto& [slot, each] : served_[rank]) {
      if (each.id != reply.id) continue;
      each.answer = to_message(reply);
      outside_.send(rank, each.answer);
    }
  }
}

void JobStore::remove_rank(int rank) {
  if (rank_ == keeper) {
    service_.gone(static_cast<std::uint64_t>(rank));
    served_.erase(rank);
  }
  if (rank != keeper) return;
  for (const auto& [id, pending] : pending_) pending.asked->is_lost = true;
  pending_.clear();
}

}  // namespace tutti::control
