// work.hpp: what async_op=True gives: a call under way, and what it will give.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>

#include "bindings/running.hpp"

namespace tutti::python {

class PendingWork {
 public:
  PendingWork(Started started, nb::object owners, nb::object result, nb::object finish);
  PendingWork(PendingWork&&) = default;
  PendingWork& operator=(PendingWork&&) = delete;
  /// Never blocks: the call goes on, and what it works on is kept until then.
  ~PendingWork();

  /// The result. None: to the call's own deadline; 0: without waiting.
  nb::object wait(nb::handle timeout);
  [[nodiscard]] bool test();
  void give_up();
  /// Of a message: see tutti::Work::cancel.
  [[nodiscard]] bool cancel();
  /// Of a message that has come.
  [[nodiscard]] Received received() const;
  [[nodiscard]] std::string_view verb() const;
  /// The call, how far it is, and whom it waits for.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] const Started& started() const { return started_; }

  std::shared_ptr<Array> learns;  // becomes the result

 private:
  Started started_;
  nb::object owners_, result_, finish_;
  bool is_finished_ = false;
  std::unique_ptr<std::mutex> turn_ =
      std::make_unique<std::mutex>();  // on the heap, as a work is moved into its Python object
};

}  // namespace tutti::python
