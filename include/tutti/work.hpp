// work.hpp: an asynchronous call.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include <tutti/clock.hpp>
#include <tutti/messages.hpp>

namespace tutti {

class Operation;
class WorkList;

/// What Group::start returns. Move-only. The arrays of the call must stay alive and unmodified until the call has
/// ended. The destructor therefore waits, at most until the call's own deadline, and discards an error; call wait() to
/// get it. A receive that no message has reached is cancelled instead.
class [[nodiscard]] Work {
 public:
  Work() = default;
  explicit Work(std::shared_ptr<Operation> operation) : operation_(std::move(operation)) {}
  Work(Work&&) = default;
  Work& operator=(Work&& other) noexcept;
  ~Work();

  /// Waits until the call has ended and throws its error. Without a timeout it waits until the call's own deadline.
  void wait();
  /// Throws Timeout if it has not ended by then; the call goes on, and wait() may be called again.
  void wait(TimeLimit timeout);
  /// Whether the call has ended, with or without an error. Makes progress.
  [[nodiscard]] bool test();
  /// `callback` is called once, when the call ends, on any thread, with the error or null; at once if the call has ended already.
  /// wait() returns after it. What it throws is logged. It may make calls, but not on a group that another thread is inside of.
  void then(std::function<void(std::exception_ptr)> callback);
  /// Takes a message back. True: as if it had never been asked for, and wait() throws Aborted. False: too late, it goes on. A send
  /// whose receiver has heard of it, and has no receive for it, is given back a little later: wait() tells. InvalidArgument for
  /// collectives, which one rank cannot take back.
  bool cancel();
  /// After a receive: what came.
  [[nodiscard]] Received received() const;
  [[nodiscard]] int source() const;
  [[nodiscard]] bool valid() const { return operation_ != nullptr; }

 private:
  friend class WorkList;
  friend class WorkAwaiter;
  void let_go();
  std::shared_ptr<Operation> operation_;
};

}  // namespace tutti
