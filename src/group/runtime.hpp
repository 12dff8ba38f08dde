// runtime.hpp: one rank's part in a job: its transport, its control network, its groups, and who makes progress.
// SPDX-License-Identifier: Apache-2.0
//
// Progress: one lock per rank. A thread that waits polls for all; a service thread polls while work is outstanding and nobody
// waits, and otherwise sleeps on the control network's links, so that probes are answered while the program computes. In the
// simulator there is no thread: the driver calls poll().
//
// Where ranks share memory, a thread that sleeps until data comes sleeps on the doorbell that local peers notify, and the service thread
// keeps listening to the links meanwhile.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <tutti/backend.hpp>
#include <tutti/clock.hpp>
#include <tutti/transport.hpp>

#include "base/log.hpp"
#include "base/no_cancellation.hpp"
#include "base/random.hpp"
#include "control/control.hpp"
#include "group/agreement.hpp"
#include "group/stall.hpp"
#include "plan/select.hpp"
#include "shm/doorbell.hpp"
#include "shm/local_peers.hpp"
#include "shm/memory.hpp"
#include "shm/rank_lock.hpp"

namespace tutti {

class IntranodeExecutor;
class GroupCore;
class Operation;

/// The process ends with status 1, whatever its program says: something was found wrong that nobody can be told any more.
void fail_at_exit();

class Runtime final : public TransportListener,
                      public control::ControlListener,
                      public std::enable_shared_from_this<Runtime> {
 public:
  struct Parts {
    const Clock* clock = nullptr;
    std::unique_ptr<Transport> transport;
    std::vector<std::string> hosts;  // of each rank in the world, as people call them
    std::vector<int> node_of;        // node of each rank in the world
    Duration default_timeout = std::chrono::seconds(300);
    Duration stall_warning = std::chrono::seconds(10);  // a call that waits longer says so
    Table table;                                        // the same on every rank
    std::uint64_t seed = 0;                             // of the control network's randomness
    bool oversubscribed = false;                        // more ranks than cores: yield, do not spin
    bool threaded = true;                               // false: the driver polls
    bool fails_at_exit = false;  // what is found wrong too late to be thrown makes the process fail
    control::ControlOptions control;
    std::vector<BackendFactory> backends;          // of the program's own, for every group
    std::shared_ptr<shm::LocalPeers> local_peers;  // who shares memory with this rank; null: nobody does
    std::shared_ptr<shm::Memory> memory;           // of this rank's arena; null with local peers
    bool may_read_local_peers = false;  // all ranks of this host may read each other's memory (process_vm_readv)
    bool may_share_memory = false;      // the same on all ranks: some of them may
    Log log;
  };
  /// `start` once it is owned by a shared_ptr.
  explicit Runtime(Parts parts);
  ~Runtime() override;
  void start();

  /// Takes part in no further call, lets what was posted end, says goodbye and closes; calls raise from the start.
  void leave();
  /// What was found wrong while this rank left: calls that differed and were not noticed before. Null: nothing.
  /// Gives up the calls that leave(), on another thread, waits for.
  void interrupt_leaving();
  /// From exit(): what went wrong is logged. From now on no call returns or throws on another thread, which could not know what to do
  /// with that: what the thread uses may be gone, and an exception that it does not expect would abort the process.
  void leave_at_exit();
  [[nodiscard]] std::exception_ptr take_leave_error() { return std::exchange(leave_error_, nullptr); }
  [[nodiscard]] bool is_leaving() const { return leaving_.load(std::memory_order_acquire); }
  /// When it leaves, it waits for what was posted.
  [[nodiscard]] bool lets_calls_end() const { return parts_.threaded; }
  /// It is leaving, and waits for what was posted.
  [[nodiscard]] bool drains() const { return is_leaving() && parts_.threaded; }
  /// Throws when this process left the job, or is a forked child of the one that joined it.
  void check_alive() const {
    if (forked_.load(std::memory_order_acquire) || gone_.load(std::memory_order_acquire)) [[unlikely]]
      refuse_call();
  }
  /// In a forked child: closes what was inherited. Nothing of it is destroyed there: much of it lies in memory that the parent uses.
  void abandon();
  [[nodiscard]] bool is_forked() const { return forked_.load(std::memory_order_acquire); }
  /// Around a fork, so that the child finds nothing half done. False: a thread has been inside for too long, perhaps this one.
  [[nodiscard]] bool lock_for_fork();
  void unlock_after_fork() { mutex_.unlock(); }

  [[nodiscard]] std::unique_lock<shm::RankLock> lock() { return std::unique_lock(mutex_); }
  [[nodiscard]] std::unique_lock<shm::RankLock> try_lock() { return std::unique_lock(mutex_, std::try_to_lock); }
  [[nodiscard]] const Clock& clock() const { return *parts_.clock; }
  [[nodiscard]] Transport& transport() const { return *parts_.transport; }
  [[nodiscard]] control::Control& control() { return *control_; }
  [[nodiscard]] Duration default_timeout() const { return parts_.default_timeout; }
  [[nodiscard]] Duration stall_warning() const { return parts_.stall_warning; }
  [[nodiscard]] const Table& table() const { return parts_.table; }
  [[nodiscard]] std::span<const BackendFactory> backend_extensions() const { return parts_.backends; }
  [[nodiscard]] const Log& log() const { return parts_.log; }
  [[nodiscard]] const std::shared_ptr<shm::LocalPeers>& local_peers() const { return parts_.local_peers; }
  [[nodiscard]] bool may_share_memory() const { return parts_.may_share_memory; }
  [[nodiscard]] bool may_read_local_peers() const { return parts_.may_read_local_peers; }
  [[nodiscard]] const std::shared_ptr<shm::Memory>& memory() const { return parts_.memory; }
  /// Memory that the local peers reach, where there are any.
  [[nodiscard]] std::shared_ptr<std::byte> take_memory(std::size_t bytes);
  [[nodiscard]] bool is_oversubscribed() const { return parts_.oversubscribed; }
  [[nodiscard]] std::string host_of(int world_rank) const;
  [[nodiscard]] int node_of(int world_rank) const;
  [[nodiscard]] bool has_left(int world_rank) const { return left_.contains(world_rank); }
  /// How far a rank that has left had come in the group; nothing if it has not left, or not said so yet.
  [[nodiscard]] std::optional<control::Position> position_when_leaving(int world_rank, std::uint64_t group) const;
  /// The link to it broke, whatever the others say.
  [[nodiscard]] bool is_unreachable(int world_rank) const { return unreachable_.contains(world_rank); }

  /// The group of all ranks that init() made; 0 before.
  [[nodiscard]] std::uint64_t world_group() const { return world_group_; }
  /// An id for a group of this rank alone, which nobody else needs to know.
  [[nodiscard]] std::uint64_t private_id() { return next_private_id_++; }

  /// Keeps what local peers may still read, until they no longer do or this rank leaves.
  void keep(std::shared_ptr<IntranodeExecutor> intranode);

  // Under the lock.
  void add(GroupCore& group);  // (takes the lock itself, as does remove)
  void remove(GroupCore& group);
  /// An operation of this group is under way; one has ended.
  void activate(GroupCore& group);
  void deactivate();
  /// An operation has ended that functions were given to (Work::then): a thread that makes progress calls them, without the lock, one
  /// after the other in the order in which the operations ended. They may do what any program may: call, fork, exit.
  void call_back(std::shared_ptr<Operation> operation);
  void run_callbacks(std::unique_lock<shm::RankLock>& guard);
  /// What this rank's program waits for, besides that operation, in words; empty: nothing.
  [[nodiscard]] std::string what_is_awaited(const Operation* except) const;
  /// One round of progress; true if anything moved.
  bool poll();
  /// When poll() should be called again at the latest: for drivers without a thread.
  [[nodiscard]] TimePoint next_look() const;

  /// Without the lock: has the service thread see to an operation that nobody waits for yet.
  void hand_to_progress_thread(const Operation& operation);
  /// Without the lock: makes progress until the predicate holds (asked under the lock) or `limit`; returns whether it holds.
  template <class Predicate>
  bool drive(Predicate ended, TimePoint limit);

  // TransportListener, ControlListener: called from poll(), under the lock.
  Verdict arrived(int peer, const Envelope& envelope) override;
  void control(int peer, std::span<const std::byte> message) override;
  void lost(int peer, std::string_view reason) override;
  void unreachable(int peer, std::string_view reason) override;
  void parted(int peer) override;
  void on_abort(std::uint64_t group, std::uint32_t epoch, const control::Cause& cause) override;
  void on_lost(int rank, const control::Cause& cause) override;
  void on_left(int rank, std::span<const control::Position> positions) override;
  void on_refusal(const control::Refusal& refusal) override;
  void on_probe(int from, std::uint64_t id, std::span<const std::byte> question) override;
  void on_probe_answer(int from, std::uint64_t id, std::span<const std::byte> answer) override;

 private:
  [[noreturn]] void refuse_call() const;
  void say_leave_error();
  void say_goodbye();
  [[nodiscard]] std::vector<control::Position> positions() const;
  void keep_calls_of(const GroupCore& group);
  void note_late_difference(const GroupFacts& facts, const control::Cause& cause);
  void compare_closed(int world_rank, const control::Position& theirs);
  [[nodiscard]] StallAnswer::State compare_calls_of_closed(int world_peer, const StallProbe& probe);
  bool pursue_differences();
  void take_word_on_closed(int world_peer, const StallAnswer& answer);
  void serve();
  void advance_groups();
  void care_for_groups(TimePoint now);
  void confirm_ended();
  void hand_on(const control::Refusal& refusal, GroupCore& group);
  [[nodiscard]] bool may_call_back() const {
    return !to_call_back_.empty() && (calls_back_ == std::thread::id() || calls_back_ == std::this_thread::get_id());
  }
  /// A thread in drive(). It may leave by an exception: of a callback's child, or pthread_exit in a callback.
  struct Waiting {
    Waiting(Runtime& runtime_waited, std::unique_lock<shm::RankLock>& guard_held)
        : runtime(runtime_waited), guard(guard_held) {
      ++runtime.waiters_;
    }
    ~Waiting();
    Runtime& runtime;
    std::unique_lock<shm::RankLock>& guard;
    bool polls = false;
  };
  void stay_while_process_ends(std::unique_lock<shm::RankLock>& guard) const;
  bool poll_or_sleep(std::unique_lock<shm::RankLock>& guard, int& idle_rounds, TimePoint limit);
  void sleep(std::unique_lock<shm::RankLock>& guard, TimePoint limit);
  void listen(std::unique_lock<shm::RankLock>& guard);

  Parts parts_;
  std::unique_ptr<control::Control> control_;
  shm::RankLock mutex_;
  std::condition_variable_any changed_;  // a waiter's turn to poll may have come, or its work may have ended
  std::condition_variable_any service_;
  std::thread thread_;
  std::map<std::uint64_t, GroupCore*> groups_;
  std::uint64_t world_group_ = 0;
  std::vector<GroupCore*> busy_;     // groups with operations under way, and some that had
  std::size_t operation_count_ = 0;  // under way, of all groups
  TimePoint next_care_{};            // when deadlines and stalls are looked at next
  std::vector<std::shared_ptr<IntranodeExecutor>> kept_;
  using Positions = std::map<std::uint64_t, control::Position>;  // by group
  std::map<int, Positions> left_;                                // of ranks that said goodbye
  std::map<std::uint64_t, ClosedGroup> closed_;                  // groups whose handle is gone, by id; the latest
  std::deque<std::uint64_t> closed_order_;
  std::map<std::uint64_t, OpenDifference> open_differences_;  // in those groups: known here, and not named yet
  std::exception_ptr leave_error_;
  std::map<int, control::Cause> lost_;
  std::set<int> unreachable_;
  std::set<int> unconfirmed_;  // lost local peers whose processes were still there when last looked at
  // Of groups that broke before this rank had made its handle; the latest few.
  std::deque<std::pair<std::uint64_t, control::Cause>> broken_before_handle_;
  std::deque<control::Refusal> refused_before_handle_;  // likewise
  struct UnclaimedMessage {
    int peer;
    Envelope envelope;
  };
  std::deque<UnclaimedMessage>
      unclaimed_messages_;  // messages of groups that this rank has no handle of yet; the latest few
  std::atomic<std::uint64_t> next_private_id_{std::uint64_t{1} << 63};
  TimePoint control_polled_at_{};
  int waiters_ = 0;
  int sleepers_ = 0;      // threads that sleep on the doorbell
  bool polling_ = false;  // somebody is in drive()'s loop
  bool some_ended_ = false;
  std::deque<std::shared_ptr<Operation>> to_call_back_;
  std::thread::id calls_back_;  // the thread that runs callbacks now
  bool watches_data_ = false;   // the service thread does
  bool stopping_ = false;
  std::atomic<bool> leaving_{false}, gone_{false}, forked_{false}, process_ends_{false};
  std::thread::id ends_process_;  // the thread that called exit(); written before process_ends_
  std::shared_ptr<Runtime> kept_in_child_;
  std::vector<std::shared_ptr<GroupCore>> groups_kept_in_child_;
};

template <class Predicate>
bool Runtime::drive(Predicate ended, TimePoint limit) {
  const NoCancellation whole;
  if (is_forked()) refuse_call();
  std::unique_lock guard(mutex_);
  Waiting waiting(*this, guard);
  while (!ended() && clock().now() < limit) {
    if (may_call_back()) {
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
    while (!poll_or_sleep(guard, idle_rounds, limit) && !ended() && !may_call_back() && clock().now() < limit) {}
    waiting.polls = polling_ = false;
    if (waiters_ > 1) changed_.notify_all();
  }
  if (process_ends_) stay_while_process_ends(guard);
  return ended();
}

}  // namespace tutti
