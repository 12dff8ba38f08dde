// work.cpp: a call under way.
// SPDX-License-Identifier: Apache-2.0
#include <tutti/work.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include <tutti/await.hpp>
#include <tutti/error.hpp>

#include "base/environment.hpp"
#include "group/core.hpp"
#include "group/operation.hpp"
#include "group/runtime.hpp"

namespace tutti {
namespace {

bool is_over(const Operation& operation) { return operation.ended() && operation.is_called_back(); }

/// Lets go of the group on this thread: its last handle may be this one. A destructor cannot be left.
enum class Leave : std::uint8_t { never, by_hook };
void drive(Operation& operation, TimePoint limit, Leave leave = Leave::by_hook) {
  if (!operation.group) return;  // waited for before
  const auto& running = operation.group->runtime();
  if (is_over(operation) && !running.is_forked() && !running.is_leaving()) return operation.group.reset();
  const auto runtime = operation.group->runtime_handle();
  const record::Waiting waiting(limit == TimePoint::min() ? nullptr : runtime->parts().recorder.get(),
                                operation.recorded);
  const auto ended = [&] { return is_over(operation); };
  if (leave == Leave::never ? runtime->drive(ended, limit) : runtime->wait(ended, limit)) operation.group.reset();
}

}  // namespace

Work& Work::operator=(Work&& other) noexcept {
  Work old(std::move(*this));
  operation_ = std::move(other.operation_);
  return *this;
}

Work::~Work() {
  if (operation_ && operation_->group && operation_->group->runtime().is_forked()) return;  // it is the parent's
  if (!operation_) return;
  if (operation_->group && operation_->request.verb == Verb::recv) operation_->group->cancel_message(*operation_);
  try {
    drive(*operation_, TimePoint::max(), Leave::never);  // ends by the call's own deadline
  } catch (const InvalidArgument&) {                     // a callback has forked, and this is the child
  }
}

void Work::wait() {
  if (!operation_) throw InvalidArgument("wait() on an empty Work: nothing was started");
  drive(*operation_, TimePoint::max());
  operation_->rethrow();
}

void Work::wait(TimeLimit timeout) {
  if (!operation_) throw InvalidArgument("wait() on an empty Work: nothing was started");
  if (operation_->group) {
    drive(*operation_, deadline_after(operation_->group->runtime().clock().now(), timeout));
  }
  if (operation_->group) {
    const auto guard = operation_->group->runtime().lock();
    throw Timeout(fmt::format("{} has not ended after waiting {}; it goes on, and may be waited for again",
                              operation_->group->parts().state.names.call(*operation_), format_duration(timeout)));
  }
  operation_->rethrow();
}

bool Work::test() {
  if (!operation_ || !operation_->group) return true;
  drive(*operation_, TimePoint::min(), Leave::never);
  if (!operation_->group) return true;
  const auto runtime = operation_->group->runtime_handle();
  auto guard = runtime->lock();
  runtime->poll();
  runtime->run_callbacks(guard);
  return operation_->ended();
}

// It has ended, and nobody will wait for it.
void Work::let_go() { operation_->group.reset(); }

void Work::then(std::function<void(std::exception_ptr)> callback) {
  if (!operation_) throw InvalidArgument("then() on an empty Work: nothing was started");
  if (operation_->group) {
    const auto runtime = operation_->group->runtime_handle();
    if (runtime->is_forked()) runtime->check_alive();
    const auto guard = runtime->lock();
    if (operation_->then(callback)) return;
  }
  callback(operation_->error());
}

bool Work::cancel() {
  if (!operation_) throw InvalidArgument("cancel() on an empty Work: nothing was started");
  if (!operation_->is_message()) {
    throw InvalidArgument(
        "cancel() is for messages: a collective is under way on all ranks, and one of them cannot take it back; "
        "Group::abort() ends it everywhere, with the group");
  }
  return operation_->group && operation_->group->cancel_message(*operation_);
}

Received Work::received() const { return operation_ ? operation_->received() : Received{}; }
/// Works of one process, which one runtime makes progress for.
class WorkList {
 public:
  /// Waits until `count` of them have ended, or for `timeout`. False: not in time.
  static bool wait(std::span<Work* const> works, std::size_t count, const TimeLimit* timeout) {
    const auto running = std::ranges::find_if(works, [](const Work* work) { return is_running(*work); });
    if (running == works.end()) return true;
    const auto runtime = (*running)->operation_->group->runtime_handle();
    std::size_t ended = 0;  // at the beginning: a wait for all of them asks about each once
    const auto enough_ended = [&] {
      while (ended < works.size() && has_ended(*works[ended])) ++ended;
      const auto behind = count == works.size() ? works.last(0) : works.subspan(ended);
      return ended + static_cast<std::size_t>(
                         std::ranges::count_if(behind, [](const Work* work) { return has_ended(*work); })) >=
             count;
    };
    return runtime->wait(enough_ended,
                         timeout == nullptr ? TimePoint::max() : deadline_after(runtime->clock().now(), *timeout));
  }
  static bool is_running(const Work& work) { return work.operation_ && work.operation_->group; }
  static bool has_ended(const Work& work) { return !is_running(work) || is_over(*work.operation_); }
};

namespace {

std::vector<Work*> pointers_to(std::span<Work> works) {
  std::vector<Work*> pointers;
  for (Work& work : works) pointers.push_back(&work);
  return pointers;
}

void wait_for_all(std::span<Work* const> works, const TimeLimit* timeout) {
  if (!WorkList::wait(works, works.size(), timeout)) {
    const auto open = std::ranges::count_if(works, [](const Work* work) { return !WorkList::has_ended(*work); });
    throw Timeout(
        fmt::format("wait_all: {} of {} calls have not ended after waiting {}; they go on, and may be waited for again",
                    open, works.size(), format_duration(*timeout)));
  }
  std::exception_ptr first;
  for (Work* const work : works) {
    try {
      if (work->valid()) work->wait();
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
}

std::size_t wait_for_any(std::span<Work> works, const TimeLimit* timeout) {
  std::vector<Work*> started = pointers_to(works);
  std::erase_if(started, [](const Work* work) { return !work->valid(); });
  if (started.empty()) throw InvalidArgument("wait_any: there is no call to wait for: every Work is empty");
  const bool some_ended = std::ranges::any_of(started, [](const Work* work) { return WorkList::has_ended(*work); });
  if (!some_ended && !WorkList::wait(started, 1, timeout)) {
    throw Timeout(
        fmt::format("wait_any: none of {} calls has ended after waiting {}; they go on, and may be waited for again",
                    started.size(), format_duration(*timeout)));
  }
  const auto ended =
      std::ranges::find_if(works, [](const Work& work) { return work.valid() && WorkList::has_ended(work); });
  return static_cast<std::size_t>(ended - works.begin());
}

}  // namespace

void wait_all(std::span<Work* const> works) { wait_for_all(works, nullptr); }
void wait_all(std::span<Work> works) { wait_for_all(pointers_to(works), nullptr); }
void wait_all(std::span<Work> works, TimeLimit timeout) { wait_for_all(pointers_to(works), &timeout); }
std::size_t wait_any(std::span<Work> works) { return wait_for_any(works, nullptr); }
std::size_t wait_any(std::span<Work> works, TimeLimit timeout) { return wait_for_any(works, &timeout); }

int Work::source() const { return operation_ ? operation_->peer : -1; }

}  // namespace tutti
