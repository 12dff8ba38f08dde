// await.hpp: waiting for several calls, and co_await for one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <exception>
#include <span>
#include <utility>

#include <tutti/clock.hpp>
#include <tutti/work.hpp>

#if defined(__cpp_impl_coroutine)
#include <coroutine>
#endif

namespace tutti {

/// Waits until all have ended, also if some fail, and throws the error of the first that did. Empty works count as ended. With a timeout, for all
/// together: throws Timeout, and those that have not ended go on.
void wait_all(std::span<Work> works);
void wait_all(std::span<Work> works, TimeLimit timeout);
void wait_all(std::span<Work* const> works);
template <class... Works>
requires(sizeof...(Works) > 0 && (std::is_same_v<Works, Work> && ...)) void wait_all(Works&... works) {
  Work* const all[] = {&works...};
  wait_all(std::span<Work* const>(all));
}

/// Waits until one of them has ended and tells which: its wait() gives the error, if there is one. Empty works are left out, so a loop moves each
/// that has ended out of the list: `Work done = std::move(works[tutti::wait_any(works)])`. InvalidArgument if all are empty.
[[nodiscard]] std::size_t wait_any(std::span<Work> works);
[[nodiscard]] std::size_t wait_any(std::span<Work> works, TimeLimit timeout);

#if defined(__cpp_impl_coroutine)
/// What `co_await work` waits with. The coroutine goes on when the call has ended, on the thread that finds out (often the one that makes
/// progress in the background), and the error is thrown there. It may drop the last Group there: the rank then leaves on that thread.
class WorkAwaiter {
 public:
  explicit WorkAwaiter(Work& work) : work_(work) {}
  [[nodiscard]] bool await_ready() {
    is_over_ = work_.test();
    return is_over_;
  }
  void await_suspend(std::coroutine_handle<> coroutine) {
    work_.then([this, coroutine](std::exception_ptr error) {
      error_ = std::move(error);
      work_.let_go();  // the coroutine may destroy the work while this function runs
      coroutine.resume();
    });
  }
  void await_resume() {
    if (is_over_) return work_.wait();
    if (error_) std::rethrow_exception(error_);
  }

 private:
  Work& work_;
  bool is_over_ = false;
  std::exception_ptr error_;
};

inline WorkAwaiter operator co_await(Work& work) { return WorkAwaiter(work); }
inline WorkAwaiter operator co_await(Work&& work) { return WorkAwaiter(work); }
#endif

}  // namespace tutti
