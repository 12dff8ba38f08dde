// progress.hpp: who makes progress for a rank, and how its threads wait.
// SPDX-License-Identifier: Apache-2.0
//
// One lock per rank. A thread that waits polls for all; a service thread polls while work is outstanding and no thread waits, and
// otherwise sleeps on the control network's links, so that probes are answered while the program computes. In the simulator there is no
// thread: the driver calls poll().
//
// Where ranks share memory, a thread that sleeps until data comes sleeps on the doorbell that local peers notify, and the service thread
// keeps listening to the links meanwhile. The constants of waiting are in waiting.hpp.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <tutti/clock.hpp>
#include <tutti/transport.hpp>

#include "base/no_cancellation.hpp"
#include "control/control.hpp"
#include "group/runtime_parts.hpp"
#include "shm/doorbell.hpp"
#include "shm/rank_lock.hpp"

namespace tutti {

class GroupCore;
class Operation;

/// What a binding's language has to say while one of its threads waits: Ctrl-C, an alarm.
class WaitHook {
 public:
  virtual ~WaitHook() = default;
  /// Without any lock, every now and then. What it throws leaves the call that waits.
  virtual void look() = 0;
};

class ProgressLoop : public std::enable_shared_from_this<ProgressLoop> {
 public:
  using Guard = std::unique_lock<shm::RankLock>;
  explicit ProgressLoop(RuntimeParts parts);

  [[nodiscard]] const RuntimeParts& parts() const { return parts_; }
  [[nodiscard]] const Clock& clock() const { return *parts_.clock; }
  [[nodiscard]] Transport& transport() const { return *parts_.transport; }
  [[nodiscard]] control::Control& control() { return *control_; }
  template <class... How>
  [[nodiscard]] Guard lock(How... how) {
    return Guard(mutex_, how...);
  }

  /// Throws when this process left the job, or is a forked child of the one that joined it.
  void check_alive() const {
    if (is_forked() || is_leaving()) [[unlikely]]
      refuse_call();
  }
  [[nodiscard]] bool is_forked() const { return forked_.load(std::memory_order_acquire); }
  [[nodiscard]] bool is_leaving() const { return leaving_.load(std::memory_order_acquire); }

  // Under the lock.
  /// An operation of this group is under way; one has ended.
  void activate(GroupCore& group);
  void deactivate();
  /// The group is gone.
  void forget(GroupCore& group);
  /// An operation has ended that functions were given to (Work::then): a thread that makes progress calls them, without the lock, one
  /// after the other in the order in which the operations ended. They may do what any program may: call, fork, exit.
  void call_back(std::shared_ptr<Operation> operation);
  void run_callbacks(Guard& guard);
  /// What this rank's program waits for, besides that operation, in words; empty: nothing.
  [[nodiscard]] std::string what_is_awaited(const Operation* except) const;
  /// One round of progress; true if anything moved.
  bool poll();
  /// Takes part in no further call, lets what was posted end, says goodbye and closes; calls raise from the start.
  virtual void leave() = 0;
  /// When poll() should be called again at the latest: for drivers without a thread.
  [[nodiscard]] TimePoint next_look() const;

  /// Under the lock: has the service thread see to an operation that no thread waits for yet (null: to all that run): at once, or to
  /// messages within waiting::message_nap where they follow each other, because to wake a thread takes longer than to start one.
  void see_to(const Operation* operation);
  /// Without the lock: makes progress until the predicate holds (asked under the lock) or `limit`; returns whether it holds.
  template <class Predicate>
  bool drive(Predicate ended, TimePoint limit);
  /// The same for a call of the program's, which a hook may leave by an exception: whoever waits gives up what the call has begun.
  template <class Predicate>
  bool wait(Predicate ended, TimePoint limit);
  /// Before the program's first call; the hook lives as long as the process.
  void look_while_waiting(WaitHook& hook) { hook_ = &hook; }

 protected:
  virtual ~ProgressLoop() = default;
  void start_thread();
  void stop_thread();
  [[noreturn]] void refuse_call() const;

  RuntimeParts parts_;
  std::unique_ptr<control::Control> control_;
  shm::RankLock mutex_;
  std::atomic<bool> leaving_{false}, forked_{false};
  std::atomic<bool> process_ends_{false};
  std::thread::id ends_process_;              // the thread that called exit(); written before process_ends_
  std::atomic<std::thread::id> thread_id_{};  // of the service thread, also after it was detached
  std::size_t operation_count_ = 0;           // under way, of all groups

 private:
  void serve();
  void listen(Guard& guard);
  void advance_groups();
  void poll_or_sleep(Guard& guard, int& idle_rounds, TimePoint limit);
  void sleep(Guard& guard, TimePoint limit);
  void stay_while_process_ends(Guard& guard) const;
  /// A thread in drive(). It may leave by an exception: of a callback's child, or pthread_exit in a callback.
  struct Waiting {
    explicit Waiting(ProgressLoop& waited) : loop(waited) { ++loop.waiters_; }
    ~Waiting();
    ProgressLoop& loop;
    bool polls = false;
  };

  static constexpr Duration between_looks = std::chrono::milliseconds(50);

  WaitHook* hook_ = nullptr;             // null: nothing ends a wait but what it waits for
  std::condition_variable_any changed_;  // a waiter's turn to poll may have come, or its work may have ended
  std::condition_variable_any service_;
  std::thread thread_;
  std::vector<GroupCore*> busy_;  // groups with operations under way, and some that had
  unsigned busy_rounds_ = 0;      // that moved something
  TimePoint next_care_{};         // when deadlines and stalls are looked at next
  TimePoint control_polled_at_{};
  TimePoint clocks_noted_at_{};
  int waiters_ = 0;
  int sleepers_ = 0;      // threads that sleep on the doorbell
  bool polling_ = false;  // somebody is in drive()'s loop
  bool some_ended_ = false;
  bool must_poll_ = false;  // calls are under way that go on only while somebody polls
  struct Callbacks {
    [[nodiscard]] bool may_run() const {
      return !due.empty() && (caller == std::thread::id() || caller == std::this_thread::get_id());
    }
    std::deque<std::shared_ptr<Operation>> due;
    std::thread::id caller;  // the thread that runs them now
  } callbacks_;
  bool watches_data_ = false;  // the service thread does
  bool looks_soon_ = false;    // … listens to the links for a moment only
  bool handed_over_ = false;   // a message was, since it last began to listen
  // … was called, and has not come yet: a system call for each message would be the most of its cost.
  bool is_called_ = false;
  bool stopping_ = false;
};

template <class Predicate>
bool ProgressLoop::drive(Predicate ended, TimePoint limit) {
  const NoCancellation whole;
  if (is_forked()) refuse_call();
  Guard guard(mutex_);
  Waiting waiting(*this);
  const auto in_time = [&] { return limit == TimePoint::max() || clock().now() < limit; };
  while (!ended() && in_time()) {
    if (callbacks_.may_run()) {
      run_callbacks(guard);
      if (is_forked()) refuse_call();  // a callback forked, and this is the child
      continue;
    }
    if (polling_) {
      changed_.wait_until(guard, std::min(limit, clock().now() + std::chrono::milliseconds(100)));
      continue;
    }
    waiting.polls = polling_ = true;
    int idle_rounds = 0;
    do {
      poll_or_sleep(guard, idle_rounds, limit);
    } while (!ended() && !callbacks_.may_run() && in_time());
    waiting.polls = polling_ = false;
    if (waiters_ > 1) changed_.notify_all();
  }
  if (process_ends_) stay_while_process_ends(guard);
  return ended();
}

template <class Predicate>
bool ProgressLoop::wait(Predicate ended, TimePoint limit) {
  while (hook_ != nullptr) {
    if (drive(ended, std::min(limit, deadline_after(clock().now(), between_looks)))) return true;
    if (clock().now() >= limit) return false;
    hook_->look();
  }
  return drive(ended, limit);
}

}  // namespace tutti
