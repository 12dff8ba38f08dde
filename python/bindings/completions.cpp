// completions.cpp: a queue of calls that have ended, for a thread of Python's that waits for many of them.
// SPDX-License-Identifier: Apache-2.0
//
// A call ends on whatever thread notices, under the runtime's lock, where no Python code may run: it would take the
// GIL, whose holder may be waiting for that lock. So the end of a call only puts its number into this queue.
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include <nanobind/stl/optional.h>

#include "bindings/bind.hpp"
#include "bindings/gil.hpp"
#include "bindings/work.hpp"
#include "group/core.hpp"
#include "group/operation.hpp"
#include "group/runtime.hpp"

namespace tutti::python {
namespace {

class Queue {
 public:
  void push(std::int64_t number) {
    const std::lock_guard guard(mutex_);
    numbers_.push_back(number);
    changed_.notify_one();
  }

  std::optional<std::int64_t> pop(std::chrono::duration<double> most) {
    std::unique_lock guard(mutex_);
    if (!changed_.wait_for(guard, most, [&] { return !numbers_.empty(); })) return std::nullopt;
    const std::int64_t number = numbers_.front();
    numbers_.pop_front();
    return number;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::int64_t> numbers_;
};

class Completions {
 public:
  /// `number` comes out of pop() when the call has ended.
  void watch(const PendingWork& work, std::int64_t number) {
    const WithoutGil release;
    const Started& started = work.started();
    if (started.ended()) return queue_->push(number);
    const auto left = std::make_shared<std::atomic<std::size_t>>(started.operations.size());
    const auto guard = started.member->core().runtime().lock();
    for (const auto& operation : started.operations) {
      const auto count_down = [queue = queue_, left, number](const std::exception_ptr&) {
        if (--*left == 0) queue->push(number);
      };
      if (!operation->then(count_down)) count_down(nullptr);
    }
  }
  void push(std::int64_t number) { queue_->push(number); }
  std::optional<std::int64_t> pop(double seconds) {
    const WithoutGil release;
    return queue_->pop(std::chrono::duration<double>(seconds));
  }

 private:
  std::shared_ptr<Queue> queue_ = std::make_shared<Queue>();  // calls under way may outlive the Python object
};

}  // namespace

void bind_completions(nb::module_& m) {
  nb::class_<Completions>(m, "Completions", "Numbers of calls that have ended, in the order in which they did.")
      .def(nb::init<>())
      .def("watch", &Completions::watch, nb::arg("work"), nb::arg("number"))
      .def("push", &Completions::push, nb::arg("number"))
      .def("pop", &Completions::pop, nb::arg("seconds"), "The next number, or None if there is none for that long.");
}

}  // namespace tutti::python
