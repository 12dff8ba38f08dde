// job_store.cpp: requests that are repeated until they are answered, and who answers them.
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

store::Reply to_reply(const StoreAnswered& message) {
  return {.kind = message.kind,
          .id = message.id,
          .value = std::make_shared<const std::string>(message.value),
          .number = message.number};
}

}  // namespace

JobStore::JobStore(int rank, int size, Duration retry, Outside outside)
    : rank_(rank),
      size_(size),
      retry_(retry),
      outside_(std::move(outside)),
      handover_(retry, {.send = outside_.send, .flood = outside_.flood, .next_staying = [this](int above) {
                          return next_staying(above);
                        }}) {}

// ---- the rank that asks

std::shared_ptr<const JobStore::Asked> JobStore::ask(TimePoint now, store::Request request) {
  request.id = next_id_++;
  auto asked = std::make_shared<Asked>(Asked{.request = std::move(request), .reply = {}});
  for (const int each : {rank_, keeper_}) {
    if (!outside_.is_lost(each)) continue;
    asked->lost = each;
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
  outside_.send(keeper_, to_message(request, pending.slot));
}

void JobStore::send_all(TimePoint now) {
  for (auto& [id, pending] : pending_) pending.repeat_at = now;
  (void)poll(now);
}

void JobStore::fail_all(int lost) {
  for (const auto& [id, pending] : pending_) pending.asked->lost = lost;
  pending_.clear();
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
  if (!outside_.is_lost(keeper_))
    outside_.send(keeper_, to_message({.kind = Kind::cancel, .id = asked.request.id}, slot));
}

void JobStore::on_answered(const StoreAnswered& message) {
  const auto found = pending_.find(message.id);
  if (found == pending_.end()) return;  // an answer to a repetition, or to what was given up
  if (message.waits) return;
  found->second.asked->reply = to_reply(message);
  pending_.erase(found);
}

bool JobStore::poll(TimePoint now) {
  bool moved = handover_.poll(now);
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
  TimePoint next = handover_.next_timer();
  for (const auto& [id, pending] : pending_) next = std::min(next, pending.repeat_at);
  return next;
}

// ---- the keeper

void JobStore::on_asked(int from, const StoreAsked& message) {
  if (keeper_ != rank_ || is_leaving_) return;
  for (const auto& answer : kept_.handle(from, message)) outside_.send(answer.to, answer.message);
}

bool JobStore::leave(TimePoint now) {
  is_leaving_ = true;
  if (keeper_ == rank_) {
    handover_.give(now, rank_, std::exchange(kept_, {}).encode());
  } else if (!handover_.has_all()) {
    handover_.drop();
  }
  return keeper_ == rank_ || handover_.has_all();
}

int JobStore::next_staying(int above) const {
  for (int rank = above + 1; rank < size_; ++rank) {
    if (outside_.is_there(rank)) return rank;
  }
  return -1;
}

// ---- the next keeper

void JobStore::on_offered(int from, const StoreOffered& message) {
  const bool may_take = from < rank_ && keeper_ < rank_ && message.parts > 0;
  if (!may_take || (is_leaving_ && !handover_.has_all())) return;
  handover_.on_offered(from, message);
}

void JobStore::on_part(int from, const StorePart& message) {
  if (!handover_.on_part(from, message)) return;
  if (handover_.has_all()) kept_ = KeptStore::decode(handover_.bytes(), size_);
  handover_.fetch();
}

void JobStore::become_keeper(TimePoint now) {
  keeper_ = rank_;
  handover_.drop();
  for (const int client : kept_.clients()) {
    if (client != rank_ && !outside_.is_there(client)) kept_.forget_answers(client);
  }
  if (is_leaving_) {
    (void)leave(now);
  } else {
    send_all(now);
  }
}

void JobStore::on_moved(TimePoint now, const StoreMoved& message) {
  if (message.keeper <= keeper_) return;
  if (message.keeper == rank_) {
    if (handover_.has_all()) become_keeper(now);
    return;
  }
  keeper_ = message.keeper;
  if (outside_.is_lost(keeper_)) {
    fail_all(keeper_);
  } else {
    send_all(now);
  }
}

// ---- ranks that go

void JobStore::rank_leaves(TimePoint now, int rank, bool has_store) {
  if (!has_store) handover_.remove_successor(now, rank);
}

void JobStore::rank_left(int rank) { kept_.forget_answers(rank); }

void JobStore::rank_lost(TimePoint now, int rank) {
  kept_.forget_answers(rank);
  handover_.remove_successor(now, rank);
  if (handover_.giver() == rank) {
    if (!handover_.has_all()) {
      handover_.drop();
    } else {
      become_keeper(now);
      outside_.flood({rank_});
    }
  }
  if (rank == keeper_ || rank == rank_) fail_all(rank);
}

}  // namespace tutti::control
