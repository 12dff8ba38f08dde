// quick.cpp: a blocking call that is over before anyone would have to sleep.
// SPDX-License-Identifier: Apache-2.0
//
// Between local peers a small call takes less time than it takes to write it into the lists by which deadlines, stalls and
// failures are watched. So it is tried first without them, under the runtime's lock and for a moment only; whatever is not
// over by then, or goes wrong, becomes an operation like any other.
#include <sched.h>

#include <algorithm>
#include <utility>

#include "backend/same_shape.hpp"
#include "group/core.hpp"
#include "group/intranode_executor.hpp"
#include "group/runtime.hpp"

namespace tutti {
namespace {

// A poll looks for some half a microsecond. A core of one's own may be shared with strangers, or, for as long as the system does
// not notice that others are idle, with the very rank that is awaited.
constexpr int polls_with_a_core_each = 4000;
constexpr int polls_before_yield = 32;
constexpr int polls_per_yield = 16;
constexpr int spins_for_a_message = 16;
constexpr int spins_at_once = 256;            // some half a microsecond, too
constexpr int polls_with_fewer_cores = 1000;  // each gives the core to another rank
constexpr int polls_per_look_at_clock = 16;
constexpr Duration spin_budget = std::chrono::milliseconds(2);

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

/// Nothing but arrays, a reduction and a root.
bool is_simple(const Request& r) {
  return r.axis == 0 && r.concat_axis == 0 && !r.stack && !r.uneven && !r.differentiated && r.structure == 0 &&
         !r.sizes_follow && r.sizes.empty() && r.recv_sizes.empty() && r.pairs.empty();
}

/// A message under way.
struct Passing {
  Transport& transport;
  const Transfer& awaited;
  int spins;

  bool poll() {
    for (int i = 0; i < spins && awaited.state == Transfer::State::pending; ++i) transport.poll();
    return awaited.state != Transfer::State::pending;
  }
};

/// Task, Body or Passing.
template <class Work>
bool poll_within_spin_budget(Work& work, bool oversubscribed, GroupCore::BlockingHook* hook = nullptr) {
  const int polls = oversubscribed ? polls_with_fewer_cores : polls_with_a_core_each;
  TimePoint begin{};
  for (int i = 0; i < polls; ++i) {
    if (work.poll()) return true;
    if (!oversubscribed && (i < polls_before_yield || i % polls_per_yield != 0)) {
      pause();
      continue;
    }
    if (hook != nullptr) std::exchange(hook, nullptr)->before_blocking();
    // Whoever gets the core may keep it for a while, and the rank's lock is held meanwhile.
    if (!oversubscribed || i % polls_per_look_at_clock == polls_per_look_at_clock - 1) {
      const TimePoint now = steady_clock().now();
      if (begin == TimePoint{}) begin = now;
      if (now - begin > spin_budget) return false;
    }
    sched_yield();
  }
  return false;
}

}  // namespace

inline bool GroupCore::CachedCall::replays(const SimpleCall& simple) const {
  return may_replay && asked.verb == simple.verb && asked.op == simple.op && asked.root == simple.root &&
         simple.input.is_like(asked.input) && simple.output.is_like(asked.output) &&
         position.holds_for(simple.input, simple.output);
}

// Programs repeat what they did last, or go through the same calls in the same order: what came after the last one is tried first.
inline GroupCore::CachedCall* GroupCore::find_replayable(const SimpleCall& simple) {
  CachedCall* const next = replayed_->followed_by;
  return next->replays(simple) ? replayed_ = next : search_replayable(simple);
}

GroupCore::CachedCall* GroupCore::search_replayable(const SimpleCall& simple) {
  const auto found = std::ranges::find_if(cached_calls_, [&](const CachedCall& each) { return each.replays(simple); });
  if (found == cached_calls_.end()) return nullptr;
  replayed_->followed_by = &*found;
  return replayed_ = &*found;
}

void GroupCore::forget(CachedCall& cached) {
  if (cached.execution != nullptr) intranode_->release(*cached.execution);
  cached.execution = nullptr;
  cached.is_known = cached.may_replay = false;
}

// Whoever finds the lock held learns at once if it is by a thread inside this group; it may as well be by the service thread.
inline std::unique_lock<shm::RankLock> GroupCore::enter(Entry* entry, Verb verb, BlockingHook* hook) {
  runtime_->check_alive();
  const auto reject_second = [&] {
    if (entry != nullptr && has_thread_inside()) refuse_second_thread(name_of(verb));
  };
  auto guard = runtime_->try_lock();
  if (!guard) {
    reject_second();
    if (hook != nullptr) hook->before_blocking();
    guard.lock();
  }
  reject_second();
  if (entry != nullptr) entry->enter(*this);
  return guard;
}

inline bool GroupCore::is_undisturbed() const {
  return !broken_ && !has_work() && unexpected_signatures_.empty() && refusals_.empty() && !proposed_ && !difference_ &&
         leavers_ahead_.empty();
}

// Everything that tells this call from one before is compared; so nothing is left to check.
bool GroupCore::run_again(Entry& entry, const SimpleCall& simple, Duration timeout,
                          std::shared_ptr<Operation>& operation) {
  auto guard = enter(&entry, simple.verb, simple.hook);
  CachedCall* const cached = find_replayable(simple);
  if (cached == nullptr || !is_undisturbed()) return false;
  ExecutionStart& start = cached->start;
  calls_.note_ended(calls_.next());
  calls_.number(start.signature, cached->hash);
  start.input = cached->admitted.input.present() ? static_cast<const std::byte*>(simple.input.data()) : nullptr;
  start.output = cached->admitted.output.present() ? static_cast<std::byte*>(simple.output.data()) : nullptr;
  const bool is_first = cached->execution == nullptr;  // of those that a body is kept for
  if (is_first) cached->execution = &intranode_->start(start);
  std::exception_ptr error;
  try {
    if (!is_first && intranode_->run_again(*cached->execution, start.signature, start.input, start.output)) {
      entry.leave();
      guard.unlock();
      intranode_->notify_after_fence();
      return true;
    }
    if (poll_within_spin_budget(*cached->execution, runtime_->is_oversubscribed(), simple.hook)) return true;
  } catch (...) {
    error = std::current_exception();
  }
  Request request{
      .verb = simple.verb, .input = simple.input, .output = simple.output, .op = simple.op, .root = simple.root};
  admit_cached(request, *cached);
  request.signature = start.signature;
  Task& task = backend_->adopt(request, *std::exchange(cached->execution, nullptr));
  operation = promote(std::move(request), timeout, &task, error);
  return true;
}

bool GroupCore::run_first(const Request& request, Task*& task) {
  task = &backend_->start(request);
  if (!poll_within_spin_budget(*task, runtime_->is_oversubscribed())) return false;
  const auto start = backend_->direct(*task);
  if (start && latest_ != nullptr && is_simple(latest_->asked)) {
    latest_->spec = *start->spec;
    latest_->position = Position(latest_->asked.input, latest_->asked.output);
    latest_->start = *start;
    latest_->hash = hash_of_call(start->signature);
    latest_->start.spec = &latest_->spec;
    latest_->may_replay = true;
  }
  task->release();
  return true;
}

bool GroupCore::is_over(const Transfer& transfer, const Message& message) const {
  if (transfer.state != Transfer::State::done) return false;
  const Signature& sent = transfer.envelope.signature;  // of a send: its own
  return sent.dtype == message.data.dtype() && sent.count == message.data.count() && sent.flags == flags_of(message);
}

std::shared_ptr<Operation> GroupCore::run_message(Entry* entry, const Message& message, int& source) {
  const auto guard = enter(entry, message.verb, message.hook);
  check_message_here(message);
  return try_message(message, source, Waiting::within_spin_budget);
}

// What is sent at once need not wait for what is received. Otherwise both are under way before anyone waits.
GroupCore::Exchange GroupCore::run_exchange(const Message* sent, const Message* received) {
  const auto guard = runtime_->lock();
  for (const Message* message : {sent, received}) {
    if (message != nullptr) check_message_here(*message);
  }
  Exchange left;
  int source = 0;
  if (sent != nullptr) left.sending = try_message(*sent, source, Waiting::not_at_all);
  if (received == nullptr) return left;
  left.receiving = try_message(*received, source, left.sending ? Waiting::not_at_all : Waiting::within_spin_budget);
  return left;
}

// The transport keeps messages in order, whoever watches over them.
std::shared_ptr<Operation> GroupCore::try_message(const Message& message, int& source, Waiting waiting) {
  if (!quick_ || is_breaking() || !message.data.is_contiguous()) {
    return launch_message(message);
  }
  if (!message_) message_ = take_operation();
  Transfer& transfer = message_->transfer;
  address(transfer, message, static_cast<std::byte*>(message.data.data()));
  const bool oversubscribed = runtime_->is_oversubscribed();
  const bool waits = waiting == Waiting::within_spin_budget && is_undisturbed();
  if (message.verb == Verb::send || !waits ||
      !runtime_->transport().try_recv(transfer, oversubscribed ? 1 : spins_at_once)) {
    hand_over(transfer, message.verb);
    if (transfer.state == Transfer::State::pending && waits) {
      Passing passing{runtime_->transport(), transfer, oversubscribed ? 1 : spins_for_a_message};
      static_cast<void>(poll_within_spin_budget(passing, oversubscribed, message.hook));
    }
  }
  if (is_over(transfer, message)) [[likely]] {
    source = message.peer == any_source ? rank_of(transfer.peer) : message.peer;
    return nullptr;
  }
  auto operation = std::exchange(message_, nullptr);
  write_down(*operation, message);
  return follow(std::move(operation), message.timeout);
}

std::shared_ptr<Operation> GroupCore::promote(Request request, Duration timeout, Task* task,
                                              const std::exception_ptr& error) {
  auto operation = make_operation(std::move(request), timeout);
  operation->task = task;
  if (error) went_wrong(*operation, error);
  return operation;
}

std::shared_ptr<Operation> GroupCore::run(Request& request, Duration timeout) {
  const auto guard = runtime_->lock();
  admit(request);
  const bool may_be_quick = quick_ || facts_.size == 1;  // alone there is nobody to wait for
  if (!may_be_quick || !is_undisturbed()) return start_admitted(std::move(request), timeout);
  Task* task = nullptr;
  std::exception_ptr error;
  try {
    if (run_first(request, task)) return nullptr;
  } catch (...) {
    error = std::current_exception();
  }
  return promote(std::move(request), timeout, task, error);
}

}  // namespace tutti
