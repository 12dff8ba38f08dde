// runtime.cpp: one rank's part in a job: its transport, its control network, its groups.
// SPDX-License-Identifier: Apache-2.0
#include "group/runtime.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <new>

#include <tutti/error.hpp>

#include "base/bytes.hpp"
#include "base/line_writer.hpp"
#include "group/core.hpp"
#include "intranode/intranode_executor.hpp"

namespace tutti {
namespace {

using namespace std::chrono_literals;

// For the last few bytes to each peer, when all the others have arrived and nobody watches the peers any more. At the limit the links are
// closed anyway: a peer that has not read them by then, because it was stopped just now, sees a loss.
constexpr Duration goodbye_limit = 60s;
constexpr std::size_t closed_limit = 64;  // groups whose calls are remembered after their handles are gone
constexpr std::size_t broken_before_handle_limit = 64;

constexpr std::size_t unclaimed_limit = 1024;

}  // namespace

// What the program printed is not lost: the handler flushes, because _Exit does not.
void fail_at_exit() {
  static const int registered = std::atexit([] {
    std::fflush(nullptr);
    LineWriter::of_stderr().flush(500ms);
    std::_Exit(EXIT_FAILURE);
  });
  (void)registered;
}

Runtime::Runtime(Parts parts) : parts_(std::move(parts)) {
  control_ = std::make_unique<control::Control>(*parts_.transport, *parts_.clock, Random(parts_.seed), parts_.control);
}

void Runtime::start() {
  parts_.transport->listen(this);
  control_->start(*this);
  if (parts_.threaded && parts_.transport->size() > 1) thread_ = std::thread([this] { serve(); });
}

// A destructor cannot throw; the process does not end as if nothing had happened.
Runtime::~Runtime() {
  leave();
  say_leave_error();
}

void Runtime::leave_at_exit() {
  ends_process_ = std::this_thread::get_id();
  process_ends_ = true;
  leave();
  say_leave_error();
}

void Runtime::say_leave_error() {
  if (!leave_error_) return;
  try {
    std::rethrow_exception(leave_error_);
  } catch (const std::exception& error) {
    parts_.log.error("{}", error.what());
  }
  leave_error_ = nullptr;
  if (parts_.fails_at_exit) fail_at_exit();
}

void Runtime::leave() {
  if (forked_ || leaving_.exchange(true)) return;
  gone_ = true;
  say_goodbye();
  {
    std::unique_lock guard(mutex_);
    stopping_ = true;
    service_.notify_all();
  }
  parts_.transport->wake();
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();  // exit() in a callback: the process ends on this thread
  } else if (thread_.joinable()) {
    thread_.join();
  }
  std::unique_lock guard(mutex_);
  for (const auto& [id, group] : std::map(groups_)) {
    group->break_with({.kind = control::Cause::Kind::aborted,
                       .culprits = {},
                       .sequence = 0,
                       .text = "this process has left the job (finalize)"});
  }
  run_callbacks(guard);
  control_->leave();
  parts_.transport->close(clock().now() + goodbye_limit);
}

void Runtime::interrupt_leaving() {
  const std::unique_lock guard(mutex_);
  for (const auto& [id, group] : groups_) group->interrupt_all();
}

// The others learn at once in which calls this rank takes part, and go on waiting for those only. Then all of that ends, by its
// own deadlines at the latest; what was sent is on its way; and every rank with a link to this one has its goodbye. From then on
// the order of bytes on each link sees to it that nobody takes the end of the process for a loss.
void Runtime::say_goodbye() {
  std::vector<GroupCore*> sound;
  {
    const std::unique_lock guard(mutex_);
    for (const auto& [id, group] : groups_) {
      if (group->is_broken()) continue;
      sound.push_back(group);
      group->withdraw_receives();
    }
    control_->announce_leave(positions());
  }
  if (!parts_.threaded || parts_.transport->size() == 1) return;
  drive([&] { return operation_count_ == 0; }, TimePoint::max());
  const auto is_told = [&] {
    return parts_.transport->is_flushed() && control_->goodbye_is_known() && !control_->is_deciding();
  };
  drive(is_told, TimePoint::max());
  // Those that made other calls are asked which, as long as they are there.
  drive([&] { return leave_error_ != nullptr || !pursue_differences(); }, TimePoint::max());
  const std::unique_lock guard(mutex_);
  for (const GroupCore* group : sound) {
    if (!leave_error_) leave_error_ = group->mismatch();
    if (const auto difference = group->what_differed()) note_late_difference(group->facts(), difference->otherwise);
  }
  for (const auto& [id, difference] : open_differences_)
    note_late_difference(closed_.at(id).facts, difference.otherwise);
}

std::vector<control::Position> Runtime::positions() const {
  std::vector<control::Position> all;
  for (const auto& [id, group] : closed_) {
    all.push_back(group.position());
  }
  for (const auto& [id, group] : groups_) {
    if (group->facts().size > 1) all.push_back(group->position());
  }
  return all;
}

// Nobody can raise it any more where it belongs: it is said when this rank leaves.
void Runtime::note_late_difference(const GroupFacts& facts, const control::Cause& cause) {
  if (leave_error_) return;
  const std::string what = fmt::format("rank {} of {}: {}", facts.rank, facts.size, cause.text);
  if (cause.kind == control::Cause::Kind::mismatch) leave_error_ = std::make_exception_ptr(Mismatch(what));
  if (cause.kind != control::Cause::Kind::lost || cause.culprits.empty()) return;
  const int rank = cause.culprits.front();
  leave_error_ = std::make_exception_ptr(PeerLost(what, rank, host_of(rank), cause.text));
}

void Runtime::refuse_call() const {
  if (forked_) {
    throw InvalidArgument(
        "this process is a fork of the one that joined the job; links cannot be shared. Call tutti::init() in "
        "processes that were started for it, or fork before init()");
  }
  if (process_ends_) {
    std::unique_lock<shm::RankLock> none;
    stay_while_process_ends(none);
  }
  throw InvalidArgument("this process has left the job (finalize was called); no call is possible any more");
}

bool Runtime::lock_for_fork() {
  const TimePoint limit = steady_clock().now() + 1s;
  while (!mutex_.try_lock()) {
    if (steady_clock().now() >= limit) return false;
    std::this_thread::yield();
  }
  return true;
}

void Runtime::abandon() {
  forked_ = true;
  // Never destroyed here: its thread lives in the parent, and its locks may be held by it for ever.
  kept_in_child_ = shared_from_this();
  for (const auto& [id, group] : groups_) groups_kept_in_child_.push_back(group->weak_from_this().lock());
  parts_.transport->abandon();
}

std::string Runtime::host_of(int world_rank) const {
  const auto index = static_cast<std::size_t>(world_rank);
  return world_rank >= 0 && index < parts_.hosts.size() ? parts_.hosts[index] : std::string();
}

int Runtime::node_of(int world_rank) const {
  const auto index = static_cast<std::size_t>(world_rank);
  return index < parts_.node_of.size() ? parts_.node_of[index] : 0;
}

void Runtime::add(GroupCore& group) {
  std::unique_lock guard(mutex_);
  groups_[group.facts().id] = &group;
  if (world_group_ == 0) world_group_ = group.facts().id;
  // It may be broken already; if a member was lost as well, the others heard of that later.
  for (const auto& [id, cause] : broken_before_handle_) {
    if (id == group.facts().id) group.break_with(cause);
  }
  for (const auto& [rank, cause] : lost_) {
    if (group.rank_of(rank) >= 0) group.break_with(cause);
  }
  for (const auto& refusal : refused_before_handle_) {
    if (refusal.group == group.facts().id) hand_on(refusal, group);
  }
  std::erase_if(unclaimed_messages_, [&](const UnclaimedMessage& unexpected) {
    if (unexpected.envelope.group != group.facts().id) return false;
    group.arrived(unexpected.peer, unexpected.envelope);
    return true;
  });
}

void Runtime::remove(GroupCore& group) {
  if (forked_) return;  // the lock may be held by a thread that exists in the parent only
  std::unique_lock guard(mutex_);
  groups_.erase(group.facts().id);
  if (!leaving_ && group.facts().size > 1) keep_calls_of(group);
  std::erase(busy_, &group);
  if (!gone_) parts_.transport->forget(group.facts().id, ~std::uint64_t{0});
}

void Runtime::keep_calls_of(const GroupCore& group) {
  closed_.insert_or_assign(group.facts().id, group.closed());
  if (const auto difference = group.what_differed()) open_differences_.emplace(group.facts().id, *difference);
  closed_order_.push_back(group.facts().id);
  if (closed_order_.size() <= closed_limit) return;
  closed_.erase(closed_order_.front());
  open_differences_.erase(closed_order_.front());
  closed_order_.pop_front();
}

void Runtime::keep(std::shared_ptr<IntranodeExecutor> intranode) {
  if (forked_) return;
  const std::unique_lock guard(mutex_);
  intranode->depart();
  std::erase_if(kept_, [](const auto& each) { return each->is_vacant(); });
  if (!intranode->is_vacant()) kept_.push_back(std::move(intranode));
}

Runtime::Verdict Runtime::arrived(int peer, const Envelope& envelope) {
  const auto found = groups_.find(envelope.group);
  if (found != groups_.end()) return found->second->arrived(peer, envelope);
  // A member that made its handle of a new group before us: its signature is looked at when we have made ours.
  unclaimed_messages_.push_back({peer, envelope});
  if (unclaimed_messages_.size() > unclaimed_limit) unclaimed_messages_.pop_front();
  return Verdict::keep;
}

void Runtime::control(int peer, std::span<const std::byte> message) { control_->received(peer, message); }
void Runtime::lost(int peer, std::string_view reason) {
  unreachable_.insert(peer);
  control_->link_lost(peer, reason);
}

void Runtime::parted(int peer) {
  if (parts_.memory) parts_.memory->ended(peer);  // it has given up all its calls before it said goodbye
  control_->link_parted(peer);
}

void Runtime::unreachable(int peer, std::string_view reason) {
  unreachable_.insert(peer);
  control_->link_refused(peer, reason);
}

void Runtime::on_abort(std::uint64_t group, std::uint32_t epoch, const control::Cause& cause) {
  const auto found = groups_.find(group);
  if (found == groups_.end() && closed_.contains(group)) {
    const bool is_own = open_differences_.erase(group) > 0;
    closed_.at(group).calls.give_up();  // nothing more is to be found
    if (is_own || cause.kind == control::Cause::Kind::mismatch) note_late_difference(closed_.at(group).facts, cause);
  } else if (found == groups_.end()) {
    broken_before_handle_.emplace_back(group, cause);
    if (broken_before_handle_.size() > broken_before_handle_limit) broken_before_handle_.pop_front();
  } else if (found->second->facts().epoch == epoch) {
    found->second->break_with(cause);
  }
}

void Runtime::on_lost(int rank, const control::Cause& cause) {
  lost_.emplace(rank, cause);
  if (parts_.local_peers && parts_.local_peers->reaches(rank)) unconfirmed_.insert(rank);
  confirm_ended();
  for (const auto& [id, group] : std::map(groups_)) {
    if (group->rank_of(rank) >= 0) group->break_with(cause);
  }
}

// A rank that is silent may be stopped, and go on writing when it wakes up: only a process that is gone is done for sure.
void Runtime::confirm_ended() {
  std::erase_if(unconfirmed_, [&](int rank) {
    const auto process = static_cast<pid_t>(parts_.local_peers->process_of(rank));
    const bool gone = kill(process, 0) != 0 && errno == ESRCH;
    if (gone) parts_.memory->ended(rank);
    return gone;
  });
}

std::shared_ptr<std::byte> Runtime::take_memory(std::size_t bytes) {
  check_alive();
  if (parts_.memory == nullptr) {
    constexpr std::align_val_t alignment{128};
    auto* const block = static_cast<std::byte*>(::operator new(std::max<std::size_t>(bytes, 1), alignment));
    return {block, [](std::byte* data) { ::operator delete(data, alignment); }};
  }
  {
    const std::unique_lock guard(mutex_);
    confirm_ended();
  }
  return parts_.memory->take(bytes);
}

void Runtime::on_left(int rank, std::span<const control::Position> positions) {
  if (parts_.local_peers && parts_.local_peers->reaches(rank)) unconfirmed_.insert(rank);  // it may still read
  Positions& known = left_[rank];
  for (const control::Position& position : positions) {
    known[position.group] = position;
    if (!groups_.contains(position.group)) compare_closed(rank, position);
  }
  for (const auto& [id, group] : groups_) {
    if (group->rank_of(rank) >= 0) group->member_left(rank);
  }
}

void Runtime::on_probe(int from, std::uint64_t id, std::span<const std::byte> question) {
  const StallProbe probe = decode_probe(question);
  const auto found = groups_.find(probe.group);
  StallAnswer answer{.group = probe.group, .sequence = probe.signature.sequence};
  if (found == groups_.end() && probe.about != StallProbe::About::waiting) {
    answer.state = compare_calls_of_closed(from, probe);
  } else if (found != groups_.end() && found->second->facts().epoch == probe.epoch &&
             found->second->rank_of(from) >= 0) {
    answer = found->second->answer_probe(from, probe);
  }
  control_->answer(from, id, encode(answer));
}

void Runtime::on_probe_answer(int from, std::uint64_t, std::span<const std::byte> bytes) {
  const StallAnswer answer = decode_answer(bytes);
  const auto found = groups_.find(answer.group);
  if (found == groups_.end()) return take_word_on_closed(from, answer);
  found->second->take_answer(from, answer);
}

void Runtime::on_refusal(const control::Refusal& refusal) {
  if (refusal.rank == parts_.transport->rank()) return;
  const auto found = groups_.find(refusal.group);
  if (found != groups_.end()) return hand_on(refusal, *found->second);
  refused_before_handle_.push_back(refusal);
  if (refused_before_handle_.size() > broken_before_handle_limit) refused_before_handle_.pop_front();
}

void Runtime::hand_on(const control::Refusal& refusal, GroupCore& group) {
  if (group.facts().epoch != refusal.epoch || group.rank_of(refusal.rank) < 0) return;
  group.take_refusal(refusal.sequence, refusal.rank, refusal.text);
}

}  // namespace tutti
