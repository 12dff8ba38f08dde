// operation.cpp: one call on a group, from the door to its end.
// SPDX-License-Identifier: Apache-2.0
#include "group/operation.hpp"

#include <utility>

#include "group/core.hpp"

namespace tutti {

void Operation::is_over(Transfer&) { group->note_news(*this); }

void Operation::rethrow() const {
  if (error_) std::rethrow_exception(error_);
}

void Operation::release_resources() {
  if (task != nullptr) {
    if (!ended()) task->cancel();
    task->release();
    task = nullptr;
  }
  if (transport != nullptr && transfer.state == Transfer::State::pending) transport->cancel(transfer);
  transport = nullptr;
  transfer.watcher = nullptr;
  request.allocate = nullptr;
}

void Operation::end(std::exception_ptr error) {
  release_resources();
  error_ = std::move(error);
  ended_.store(true, std::memory_order_release);
  for (auto& callback : std::exchange(callbacks_, {})) callback(error_);
}

void Operation::then(std::function<void(std::exception_ptr)> callback) {
  if (ended()) {
    callback(error_);
  } else {
    callbacks_.push_back(std::move(callback));
  }
}

void Operation::reset() {
  request = Request{};
  error_ = nullptr;
  callbacks_.clear();
  waits_for_turn = false;
  failing.clear();
  failing_peer = -1;
  does_not_fit = false;
  reported = false;
  probe_count = 0;
  site.clear();
  peer = -1;
  transfer.state = Transfer::State::idle;
  transfer.error.clear();
  ended_.store(false, std::memory_order_release);
}

}  // namespace tutti
