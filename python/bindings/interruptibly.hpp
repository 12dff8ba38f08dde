// interruptibly.hpp: a wait that Ctrl-C ends, for calls of the core, which does not handle Python's signals.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <future>
#include <thread>
#include <type_traits>

#include "bindings/bind.hpp"
#include "bindings/gil.hpp"

namespace tutti::python {

/// What `work` gives, run on a thread of its own without the GIL. If a signal's handler raises meanwhile, that thread
/// is left to itself, so `work` has to own what it uses; it ends by its deadline. With the GIL.
template <class Work>
auto interruptibly(Work work) {
  using Result = std::invoke_result_t<Work>;
  std::packaged_task<Result()> task(std::move(work));
  std::future<Result> future = task.get_future();
  std::thread(std::move(task)).detach();
  while (true) {
    {
      const WithoutGil release;
      if (future.wait_for(std::chrono::milliseconds(50)) == std::future_status::ready) return future.get();
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

}  // namespace tutti::python
