// work.hpp: a call under way.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include <tutti/clock.hpp>

namespace tutti {

class Operation;

/// What Group::start gives back. Move-only. The arrays of the call must stay alive and untouched until it has ended; the
/// destructor therefore waits (at most to the call's own deadline) and swallows what went wrong: wait() to hear of it.
class [[nodiscard]] Work {
 public:
  Work() = default;
  explicit Work(std::shared_ptr<Operation> operation) : operation_(std::move(operation)) {}
  Work(Work&&) = default;
  Work& operator=(Work&& other) noexcept;
  ~Work();

  /// Waits until the call has ended; throws what went wrong. Without a timeout: to the call's own deadline.
  void wait();
  /// Throws Timeout if it has not ended by then; the call goes on, and wait() may be called again.
  void wait(Duration timeout);
  /// Whether it has ended, well or not. Makes progress.
  [[nodiscard]] bool test();
  /// Called once when it ends, on any thread, with the error or nothing; at once if it has ended already. wait() returns after it. What the
  /// function throws is logged. It may call, on other groups than one that a thread is inside of.
  void then(std::function<void(std::exception_ptr)> callback);
  /// After a receive: the rank in the group whose message it was.
  [[nodiscard]] int source() const;
  [[nodiscard]] bool valid() const { return operation_ != nullptr; }

 private:
  std::shared_ptr<Operation> operation_;
};

}  // namespace tutti
