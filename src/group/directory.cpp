// directory.cpp: the groups of one rank, and the ranks that are gone.
// SPDX-License-Identifier: Apache-2.0
#include "group/directory.hpp"

#include <signal.h>

#include <cerrno>

#include "group/core.hpp"
#include "group/runtime.hpp"

namespace tutti {
namespace {

constexpr std::size_t early_limit = 64, early_messages_limit = 1024;

template <class Queue, class Item>
void push_limited(Queue& queue, Item&& item, std::size_t limit) {
  queue.push_back(std::forward<Item>(item));
  if (queue.size() > limit) queue.pop_front();
}

}  // namespace

GroupDirectory::GroupDirectory(Runtime& runtime)
    : runtime_(runtime), closed_(runtime.control(), runtime.parts().hosts) {}

GroupCore* GroupDirectory::find(std::uint64_t group) const {
  const auto found = groups_.find(group);
  return found == groups_.end() ? nullptr : found->second;
}

void GroupDirectory::add(GroupCore& group) {
  const auto guard = runtime_.lock();
  const std::uint64_t id = group.facts().id;
  groups_[id] = &group;
  if (world_group_ == 0) world_group_ = id;
  // It may be broken already; if a member was lost as well, the others heard of that later.
  for (const auto& [broken, cause] : early_aborts_) {
    if (broken == id) group.parts().failure.break_with(cause);
  }
  for (const auto& [rank, cause] : lost_) {
    if (group.facts().rank_of(rank) >= 0) group.parts().failure.break_with(cause);
  }
  for (const auto& refusal : early_refusals_) {
    if (refusal.group == id) hand_on(refusal, group);
  }
  std::erase_if(early_messages_, [&](const EarlyMessage& message) {
    if (message.envelope.group != id) return false;
    group.parts().agreement.arrived(message.peer, message.envelope);
    return true;
  });
}

void GroupDirectory::remove(GroupCore& group) {
  if (runtime_.is_forked()) return;  // the lock may be held by a thread that exists in the parent only
  const auto guard = runtime_.lock();
  groups_.erase(group.facts().id);
  if (!runtime_.is_leaving() && group.facts().size > 1) closed_.keep(group);
  runtime_.forget(group);
  if (!runtime_.is_leaving()) runtime_.transport().forget(group.facts().id, ~std::uint64_t{0});
}

std::vector<control::Position> GroupDirectory::positions() const {
  std::vector<control::Position> all = closed_.positions();
  for (const auto& [id, group] : groups_) {
    if (group->facts().size > 1) all.push_back(group->parts().agreement.position());
  }
  return all;
}

bool GroupDirectory::pursue_differences() {
  const TimePoint now = runtime_.clock().now();
  bool may_be_named = closed_.pursue(now);
  for (const auto& [id, group] : groups_) may_be_named |= group->parts().agreement.is_naming_difference(now);
  return may_be_named;
}

std::optional<control::Position> GroupDirectory::position_when_leaving(int world_rank, std::uint64_t group) const {
  const auto left = left_.find(world_rank);
  if (left == left_.end()) return std::nullopt;
  const auto found = left->second.find(group);
  return found == left->second.end() ? std::nullopt : std::optional(found->second);
}

GroupDirectory::Verdict GroupDirectory::arrived(int peer, const Envelope& envelope) {
  if (GroupCore* const group = find(envelope.group)) return group->parts().agreement.arrived(peer, envelope);
  // A member made its handle of a new group before this rank: its signature is compared when this rank has made its own.
  push_limited(early_messages_, EarlyMessage{peer, envelope}, early_messages_limit);
  return Verdict::keep;
}

void GroupDirectory::control(int peer, std::span<const std::byte> message) {
  runtime_.control().received(peer, message);
}

void GroupDirectory::lost(int peer, std::string_view reason) {
  unreachable_.insert(peer);
  lost_links_.insert(peer);
  runtime_.control().link_lost(peer, reason);
}

void GroupDirectory::unreachable(int peer, std::string_view reason) {
  unreachable_.insert(peer);
  runtime_.control().link_refused(peer, reason);
}

void GroupDirectory::parted(int peer) {
  if (const auto& memory = runtime_.parts().memory) memory->ended(peer);  // it gave up its calls before it said goodbye
  runtime_.control().link_parted(peer);
}

void GroupDirectory::on_abort(std::uint64_t id, std::uint32_t epoch, const control::Cause& cause) {
  GroupCore* const group = find(id);
  if (group == nullptr) {
    if (!closed_.take_abort(id, cause)) push_limited(early_aborts_, std::pair(id, cause), early_limit);
  } else if (group->facts().epoch == epoch) {
    group->parts().failure.break_with(cause);
  }
}

void GroupDirectory::on_lost(int rank, const control::Cause& cause) {
  lost_.emplace(rank, cause);
  if (rank != runtime_.transport().rank()) runtime_.transport().give_up(rank);
  const auto& local_peers = runtime_.parts().local_peers;
  if (local_peers && local_peers->reaches(rank)) unconfirmed_.insert(rank);
  confirm_ended();
  for (const auto& [id, group] : std::map(groups_)) {
    if (group->facts().rank_of(rank) >= 0) group->parts().failure.break_with(cause);
  }
}

// A rank that is silent may be stopped, and go on writing when it wakes up: only a process that is gone is done for sure.
void GroupDirectory::confirm_ended() {
  std::erase_if(unconfirmed_, [&](int rank) {
    const auto process = static_cast<pid_t>(runtime_.parts().local_peers->process_of(rank));
    const bool gone = kill(process, 0) != 0 && errno == ESRCH;
    if (gone) runtime_.parts().memory->ended(rank);
    return gone;
  });
}

void GroupDirectory::on_left(int rank, std::span<const control::Position> positions) {
  const auto& local_peers = runtime_.parts().local_peers;
  if (local_peers && local_peers->reaches(rank)) unconfirmed_.insert(rank);  // it may still read
  auto& known = left_[rank];
  for (const control::Position& position : positions) {
    known[position.group] = position;
    if (!groups_.contains(position.group)) closed_.compare(rank, position, runtime_.clock().now());
  }
  for (const auto& [id, group] : groups_) {
    if (group->facts().rank_of(rank) >= 0) group->parts().stall_watch.member_left(rank);
  }
}

void GroupDirectory::on_probe(int from, std::uint64_t id, std::span<const std::byte> question) {
  const StallProbe probe = decode_probe(question);
  GroupCore* const group = find(probe.group);
  StallAnswer answer{.group = probe.group, .sequence = probe.signature.sequence};
  if (group == nullptr && probe.about != StallProbe::About::waiting) {
    answer.state = closed_.answer(from, probe);
  } else if (group != nullptr && group->facts().epoch == probe.epoch && group->facts().rank_of(from) >= 0) {
    const Operation* const asked_about = group->parts().running.find(probe.signature.sequence);
    answer = group->parts().stall_watch.answer(from, probe, runtime_.what_is_awaited(asked_about));
  }
  runtime_.control().answer(from, id, encode(answer));
}

void GroupDirectory::on_probe_answer(int from, std::uint64_t id, std::span<const std::byte> bytes) {
  const StallAnswer answer = decode_answer(bytes);
  if (GroupCore* const group = find(answer.group)) {
    group->parts().stall_watch.take_answer(from, id, answer, runtime_.clock().now());
  } else {
    closed_.take_answer(from, answer);
  }
}

void GroupDirectory::on_refusal(const control::Refusal& refusal) {
  if (refusal.rank == runtime_.transport().rank()) return;
  if (GroupCore* const group = find(refusal.group)) return hand_on(refusal, *group);
  push_limited(early_refusals_, refusal, early_limit);
}

void GroupDirectory::hand_on(const control::Refusal& refusal, GroupCore& group) {
  if (group.facts().epoch != refusal.epoch || group.facts().rank_of(refusal.rank) < 0) return;
  group.parts().refusals.take(refusal.sequence, refusal.rank, refusal.text);
}

}  // namespace tutti
