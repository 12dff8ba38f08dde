// quick.cpp: a blocking call that is over before anyone would have to sleep.
// SPDX-License-Identifier: Apache-2.0
//
// Between neighbours a small call takes less time than it takes to write it into the lists by which deadlines, stalls and
// failures are watched. So it is tried first without them, under the runtime's lock and for a moment only; whatever is not
// over by then, or goes wrong, becomes an operation like any other.
#include <sched.h>

#include "engine/execution.hpp"
#include "group/core.hpp"
#include "group/runtime.hpp"

namespace tutti {
namespace {

constexpr int polls_with_a_core_each = 4000;  // some 100 µs
constexpr int polls_with_fewer_cores = 60;    // each gives the core to another rank

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

bool poll_for_a_moment(Task& task, bool oversubscribed) {
  const int polls = oversubscribed ? polls_with_fewer_cores : polls_with_a_core_each;
  for (int i = 0; i < polls; ++i) {
    if (task.poll()) return true;
    if (oversubscribed) {
      sched_yield();
    } else {
      pause();
    }
  }
  return false;
}

}  // namespace

std::shared_ptr<Operation> GroupCore::run(Request request, Duration timeout) {
  const auto guard = runtime_->lock();
  admit(request);
  const bool undisturbed = running_.empty() && early_.empty() && refusals_.empty() && !proposed_;
  if (!quick_ || !undisturbed) return start_admitted(std::move(request), timeout);
  Task* task = nullptr;
  std::exception_ptr error;
  try {
    task = &backend_->start(request);
    if (poll_for_a_moment(*task, runtime_->is_oversubscribed())) {
      task->release();
      return nullptr;
    }
  } catch (...) {
    error = std::current_exception();
  }
  const auto operation = make_operation(std::move(request), timeout);
  operation->task = task;
  if (error) went_wrong(*operation, error);
  return operation;
}

}  // namespace tutti
