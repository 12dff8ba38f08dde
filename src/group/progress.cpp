// progress.cpp: who makes progress for a rank, and how it waits.
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>

#include "group/core.hpp"
#include "group/runtime.hpp"
#include "group/waiting.hpp"

namespace tutti {
namespace {

using namespace std::chrono_literals;
using waiting::control_nap, waiting::idle_nap, waiting::nap, waiting::short_nap;

constexpr Duration control_interval = 1ms;
// Deadlines and stalls are looked at so often at most, and in no more than one part in twenty of the time.
constexpr Duration care_interval = 2ms;
constexpr int care_share = 20;

// A thread that runs a callback, without the lock. It may end there (pthread_exit).
class Calling {
 public:
  Calling(std::thread::id& caller, std::unique_lock<shm::RankLock>& guard)
      : caller_(caller), before_(std::exchange(caller, std::this_thread::get_id())), guard_(guard) {
    guard_.unlock();
  }
  ~Calling() {
    guard_.lock();
    caller_ = before_;
  }
  Calling(const Calling&) = delete;
  Calling& operator=(const Calling&) = delete;

 private:
  std::thread::id& caller_;
  std::thread::id before_;
  std::unique_lock<shm::RankLock>& guard_;
};

}  // namespace

void Runtime::activate(GroupCore& group) {
  ++operation_count_;
  if (!group.set_listed(true)) busy_.push_back(&group);
}

void Runtime::deactivate() {
  --operation_count_;
  some_ended_ = true;
}

Runtime::Waiting::~Waiting() {
  if (polls) runtime.polling_ = false;
  --runtime.waiters_;
  if (runtime.operation_count_ > 0 && runtime.waiters_ == 0) {  // asynchronous work goes on without us
    runtime.service_.notify_one();
    if (runtime.parts_.local_peers && !runtime.watches_data_) runtime.parts_.transport->wake();
  }
}

void Runtime::stay_while_process_ends(std::unique_lock<shm::RankLock>& guard) const {
  const std::thread::id self = std::this_thread::get_id();
  if (self == ends_process_ || self == thread_.get_id()) return;
  if (guard.owns_lock()) guard.unlock();
  while (true) pause();
}

void Runtime::call_back(std::shared_ptr<Operation> operation) {
  if (!parts_.threaded) return operation->run_callbacks(parts_.log);  // a simulation: its driver holds no lock
  to_call_back_.push_back(std::move(operation));
  if (!thread_.joinable() && !stopping_) thread_ = std::thread([this] { serve(); });  // a world of one has none before
  service_.notify_one();
  parts_.transport->wake();
}

void Runtime::run_callbacks(std::unique_lock<shm::RankLock>& guard) {
  while (may_call_back()) {
    const auto operation = std::move(to_call_back_.front());
    to_call_back_.pop_front();
    {
      const Calling calling(calls_back_, guard);
      operation->run_callbacks(parts_.log);
    }
    if (is_forked()) return;  // the function forked, and this is the child
    changed_.notify_all();    // a thread that waits for the operation waits for the function, too
    parts_.transport->wake();
    if (parts_.local_peers) shm::notify(parts_.local_peers->arena().header());
  }
}

void Runtime::hand_to_progress_thread(const Operation& operation) {
  const std::unique_lock guard(mutex_);
  if (operation.ended() || waiters_ > 0 || !thread_.joinable()) return;
  service_.notify_one();
  if (!watches_data_) parts_.transport->wake();  // it sleeps on the control links only
}

// Operations end, and start others, while we walk: by index.
void Runtime::advance_groups() {
  for (std::size_t i = 0; i < busy_.size();) {
    GroupCore& group = *busy_[i];
    if (group.has_work()) {
      group.advance();
      ++i;
    } else {
      group.set_listed(false);
      busy_[i] = busy_.back();
      busy_.pop_back();
    }
  }
}

std::string Runtime::what_is_awaited(const Operation* except) const {
  for (const GroupCore* const group : busy_) {
    if (std::string text = group->what_is_awaited(except); !text.empty()) return text;
  }
  return {};
}

void Runtime::care_for_groups(TimePoint now) {
  if (now < next_care_) return;
  const TimePoint begin = clock().now();
  for (std::size_t i = 0; i < busy_.size(); ++i) busy_[i]->look_after(now);
  const TimePoint end = clock().now();
  next_care_ = end + std::max(care_interval, care_share * (end - begin));
}

bool Runtime::poll() {
  bool moved = parts_.transport->poll();
  const TimePoint now = clock().now();
  if (now - control_polled_at_ >= control_interval || !parts_.threaded) {
    control_polled_at_ = now;
    control_->poll();
  }
  advance_groups();
  care_for_groups(now);
  if (std::exchange(some_ended_, false)) {
    moved = true;
    if (waiters_ > 1) changed_.notify_all();
  }
  return moved;
}

TimePoint Runtime::next_look() const {
  const TimePoint timer = control_->next_timer();
  return operation_count_ == 0 ? timer : std::min(timer, clock().now() + nap);
}

bool Runtime::poll_or_sleep(std::unique_lock<shm::RankLock>& guard, int& idle_rounds, TimePoint limit) {
  if (poll()) {
    idle_rounds = 0;
    return false;
  }
  const waiting::Step step = waiting::step_after(
      ++idle_rounds, {.oversubscribed = parts_.oversubscribed, .local_peers = parts_.local_peers != nullptr});
  if (step == waiting::Step::sleep) {
    sleep(guard, limit);
  } else {
    guard.unlock();
    if (step == waiting::Step::yield) std::this_thread::yield();
    guard.lock();
  }
  return false;
}

// Over data, one thread at a time. Neighbours ring only for those who say that they sleep, so one says it first and then
// looks once more. Nobody can wait for links and bells at once: with something under way on both, naps are short.
void Runtime::sleep(std::unique_lock<shm::RankLock>& guard, TimePoint limit) {
  if (!parts_.local_peers || parts_.transport->busy_outside()) {
    const TimePoint until = std::min(limit, clock().now() + (parts_.local_peers ? short_nap : nap));
    guard.unlock();
    parts_.transport->wait(until, Transport::Events::all);
    guard.lock();
    return;
  }
  shm::ArenaHeader& own = parts_.local_peers->arena().header();
  shm::Doorbell doorbell(own);
  ++sleepers_;
  doorbell.prepare();
  if (poll()) {
    doorbell.leave();
  } else {
    const bool serving = std::this_thread::get_id() == thread_.get_id();
    const TimePoint until = std::min(limit, clock().now() + (serving ? control_nap : nap));
    guard.unlock();
    doorbell.sleep(until);
    guard.lock();
  }
  // It has just said for both that nobody sleeps: the other one says it anew.
  if (--sleepers_ > 0) shm::wake(own);
}

// Beside a thread that waits, and may sleep on the doorbell: what the links bring is looked at here.
void Runtime::listen(std::unique_lock<shm::RankLock>& guard) {
  watches_data_ = false;
  guard.unlock();
  parts_.transport->wait(clock().now() + idle_nap, Transport::Events::control);
  guard.lock();
  if (!stopping_ && poll()) shm::notify(parts_.local_peers->arena().header());
}

void Runtime::serve() {
  std::unique_lock guard(mutex_);
  while (!stopping_ && !is_forked()) {
    if (may_call_back()) {
      run_callbacks(guard);
      continue;
    }
    if (polling_ || waiters_ > 0) {
      if (parts_.local_peers) {
        listen(guard);
      } else {
        service_.wait_for(guard, nap);
      }
      continue;
    }
    poll();
    const bool outstanding = watches_data_ = operation_count_ > 0;
    if (outstanding) {
      sleep(guard, TimePoint::max());
    } else {
      guard.unlock();
      parts_.transport->wait(clock().now() + idle_nap, Transport::Events::control);
      guard.lock();
    }
  }
}

}  // namespace tutti
