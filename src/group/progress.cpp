// progress.cpp: who makes progress for a rank, and how it waits.
// SPDX-License-Identifier: Apache-2.0
#include "group/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include <tutti/error.hpp>

#include "group/core.hpp"
#include "group/waiting.hpp"

namespace tutti {
namespace {

using namespace std::chrono_literals;
using waiting::control_nap, waiting::idle_nap, waiting::message_nap, waiting::nap, waiting::polling_nap,
    waiting::short_nap;

constexpr Duration control_interval = 1ms;
// Deadlines and stalls are looked at so often at most, and in no more than one part in twenty of the time.
constexpr Duration care_interval = 2ms;
constexpr int care_share = 20;
constexpr Duration clocks_interval = 1s;
// While messages come in, reading the clock would take a tenth of the time: one round in so many does.
constexpr unsigned busy_rounds_per_look = 8;

// A thread that runs a callback, without the lock. It may end there (pthread_exit).
class Calling {
 public:
  Calling(std::thread::id& caller, ProgressLoop::Guard& guard)
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
  ProgressLoop::Guard& guard_;
};

bool only_messages_run(const std::vector<GroupCore*>& groups) {
  return std::ranges::all_of(
      groups, [](const GroupCore* group) { return std::as_const(*group).parts().running.collectives().empty(); });
}

// A callback, or a coroutine that it resumes, may drop the last handle of the last group. The rank then leaves when the callbacks have
// returned, on this thread, which thereafter touches nothing of the loop. False: the loop is left, or gone.
bool serve_callbacks(ProgressLoop& loop, ProgressLoop::Guard& guard) {
  std::shared_ptr<ProgressLoop> kept = loop.weak_from_this().lock();
  loop.run_callbacks(guard);
  if (!kept || loop.is_forked())
    return true;  // a thread that destroys the loop waits for this one; a child destroys nothing
  guard.unlock();
  if (kept.use_count() == 1) {
    kept->leave();
    return false;
  }
  const std::weak_ptr<ProgressLoop> self = kept;
  kept.reset();
  if (self.expired()) return false;
  guard.lock();
  return true;
}

}  // namespace

ProgressLoop::ProgressLoop(RuntimeParts parts) : parts_(std::move(parts)) {
  control_ = std::make_unique<control::Control>(*parts_.transport, *parts_.clock, Random(parts_.seed), parts_.control);
}

void ProgressLoop::start_thread() {
  thread_ = std::thread([this] { serve(); });
}

void ProgressLoop::stop_thread() {
  {
    const Guard guard(mutex_);
    stopping_ = true;
    service_.notify_all();
  }
  parts_.transport->wake();
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();  // exit() in a callback: the process ends on this thread
  } else if (thread_.joinable()) {
    thread_.join();
  }
}

void ProgressLoop::refuse_call() const {
  if (is_forked()) {
    throw InvalidArgument(
        "this process is a fork of the one that joined the job; links cannot be shared. Call tutti::init() in "
        "processes that were started for it, or fork before init()");
  }
  if (process_ends_) {
    Guard none;
    stay_while_process_ends(none);
  }
  throw InvalidArgument("this process has left the job (finalize was called); no call is possible any more");
}

void ProgressLoop::activate(GroupCore& group) {
  ++operation_count_;
  if (!std::exchange(group.parts().is_polled, true)) busy_.push_back(&group);
}

void ProgressLoop::forget(GroupCore& group) { std::erase(busy_, &group); }

void ProgressLoop::deactivate() {
  --operation_count_;
  some_ended_ = true;
}

ProgressLoop::Waiting::~Waiting() {
  if (loop.is_forked()) return;  // in a callback; the service thread, and what it may hold, is the parent's
  if (polls) loop.polling_ = false;
  --loop.waiters_;
  loop.see_to(nullptr);  // asynchronous work goes on without this thread
}

void ProgressLoop::stay_while_process_ends(Guard& guard) const {
  const std::thread::id self = std::this_thread::get_id();
  if (self == ends_process_ || self == thread_.get_id()) return;
  if (guard.owns_lock()) guard.unlock();
  while (true) pause();
}

void ProgressLoop::call_back(std::shared_ptr<Operation> operation) {
  if (!parts_.threaded) return operation->run_callbacks(parts_.log);  // a simulation: its driver holds no lock
  callbacks_.due.push_back(std::move(operation));
  if (!thread_.joinable() && !stopping_) start_thread();  // a world of one has none before
  service_.notify_one();
  parts_.transport->wake();
}

void ProgressLoop::run_callbacks(Guard& guard) {
  while (callbacks_.may_run()) {
    const auto operation = std::move(callbacks_.due.front());
    callbacks_.due.pop_front();
    {
      const Calling calling(callbacks_.caller, guard);
      operation->run_callbacks(parts_.log);
    }
    if (is_forked()) return;  // the function forked, and this is the child
    changed_.notify_all();    // a thread that waits for the operation waits for the function, too
    parts_.transport->wake();
    if (parts_.local_peers) shm::notify(parts_.local_peers->arena().header());
  }
}

void ProgressLoop::see_to(const Operation* operation) {
  if (operation_count_ == 0 || waiters_ > 0 || !thread_.joinable() || (operation != nullptr && operation->ended()))
    return;
  const bool is_message = operation != nullptr ? operation->is_message() : only_messages_run(busy_);
  handed_over_ = handed_over_ || is_message;
  if (is_message && looks_soon_ && !parts_.transport->busy_outside()) return;
  if (std::exchange(is_called_, true)) return;
  service_.notify_one();
  if (!watches_data_ && (operation != nullptr || parts_.local_peers)) parts_.transport->wake();
}

// Operations end, and start others, while we walk: by index.
void ProgressLoop::advance_groups() {
  must_poll_ = false;
  for (std::size_t i = 0; i < busy_.size();) {
    GroupCore& group = *busy_[i];
    if (!group.parts().running.empty()) {
      group.advance();
      must_poll_ = must_poll_ || group.must_be_polled();
      ++i;
    } else {
      group.parts().is_polled = false;
      busy_[i] = busy_.back();
      busy_.pop_back();
    }
  }
}

std::string ProgressLoop::what_is_awaited(const Operation* except) const {
  for (const GroupCore* const group : busy_) {
    const GroupNames& names = group->parts().state.names;
    const Operation* const oldest = std::as_const(*group).parts().running.oldest(except);
    if (oldest == nullptr) continue;
    const std::string where = oldest->is_message() ? "" : " in " + names.group();
    return fmt::format("{}{}{}", names.call(*oldest), where, at_site(oldest->site));
  }
  return {};
}

bool ProgressLoop::poll() {
  bool moved = parts_.transport->poll();
  const bool looks_at_clock = !moved || !parts_.threaded || ++busy_rounds_ % busy_rounds_per_look == 0;
  const TimePoint now = looks_at_clock ? clock().now() : TimePoint{};
  if (looks_at_clock && (now - control_polled_at_ >= control_interval || !parts_.threaded)) {
    control_polled_at_ = now;
    control_->poll();
  }
  advance_groups();
  if (looks_at_clock && now >= next_care_) {
    for (std::size_t i = 0; i < busy_.size(); ++i) busy_[i]->look_after(now);
    const TimePoint end = clock().now();
    next_care_ = end + std::max(care_interval, care_share * (end - now));
    if (parts_.recorder && end - clocks_noted_at_ > clocks_interval) {
      clocks_noted_at_ = end;
      parts_.recorder->note_time();
    }
  }
  if (std::exchange(some_ended_, false)) {
    moved = true;
    if (waiters_ > 1) changed_.notify_all();
  }
  return moved;
}

TimePoint ProgressLoop::next_look() const {
  const TimePoint timer = control_->next_timer();
  return operation_count_ == 0 ? timer : std::min(timer, clock().now() + nap);
}

void ProgressLoop::poll_or_sleep(Guard& guard, int& idle_rounds, TimePoint limit) {
  if (poll()) {
    idle_rounds = 0;
    return;
  }
  const waiting::Step step = waiting::step_after(
      ++idle_rounds, {.oversubscribed = parts_.oversubscribed,
                      .local_peers = parts_.local_peers != nullptr || parts_.transport->must_be_polled()});
  if (step == waiting::Step::sleep) return sleep(guard, limit);
  guard.unlock();
  if (step == waiting::Step::yield) std::this_thread::yield();
  guard.lock();
}

// Over data, one thread at a time. Neighbours ring only for those who say that they sleep, so one says it first and then
// looks once more. Nobody can wait for links and bells at once: with something under way on both, naps are short.
void ProgressLoop::sleep(Guard& guard, TimePoint limit) {
  if (must_poll_ || parts_.transport->must_be_polled()) {
    guard.unlock();
    std::this_thread::sleep_for(polling_nap);
    guard.lock();
    return;
  }
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

// What the links bring is looked at here; beside a thread that waits, and may sleep on the doorbell. While messages are handed over one
// after the other, it looks again after a moment, so that nobody need wake it. Not so where links carry them: they move on only while
// somebody listens for them.
void ProgressLoop::listen(Guard& guard) {
  watches_data_ = false;
  looks_soon_ = std::exchange(handed_over_, false) && parts_.local_peers && !parts_.transport->busy_outside();
  const TimePoint until = clock().now() + (looks_soon_ ? message_nap : idle_nap);
  guard.unlock();
  parts_.transport->wait(until, Transport::Events::control);
  guard.lock();
  looks_soon_ = false;
  if (!stopping_ && poll() && parts_.local_peers) shm::notify(parts_.local_peers->arena().header());
}

void ProgressLoop::serve() {
  thread_id_ = std::this_thread::get_id();
  Guard guard(mutex_);
  while (!stopping_ && !is_forked()) {
    is_called_ = false;
    if (callbacks_.may_run()) {
      if (!serve_callbacks(*this, guard)) return;
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
    watches_data_ = operation_count_ > 0;
    if (watches_data_) {
      sleep(guard, TimePoint::max());
    } else {
      listen(guard);
    }
  }
}

}  // namespace tutti
