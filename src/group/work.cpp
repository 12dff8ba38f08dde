// work.cpp: a call under way.
// SPDX-License-Identifier: Apache-2.0
#include <tutti/work.hpp>

#include <fmt/format.h>

#include <tutti/error.hpp>

#include "base/environment.hpp"
#include "group/core.hpp"
#include "group/operation.hpp"
#include "group/runtime.hpp"

namespace tutti {
namespace {

/// Lets go of the group on this thread: its last handle may be this one.
void drive(Operation& operation, TimePoint limit) {
  if (!operation.group) return;  // waited for before
  const auto runtime = operation.group->runtime_handle();
  const auto is_over = [&] { return operation.ended() && operation.is_called_back(); };
  if (runtime->drive(is_over, limit)) operation.group.reset();
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
    drive(*operation_, TimePoint::max());  // ends by the call's own deadline
  } catch (const InvalidArgument&) {       // a callback has forked, and this is the child
  }
}

void Work::wait() {
  if (!operation_) throw InvalidArgument("wait() on an empty Work: nothing was started");
  drive(*operation_, TimePoint::max());
  operation_->rethrow();
}

void Work::wait(Duration timeout) {
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
  drive(*operation_, TimePoint::min());
  if (!operation_->group) return true;
  const auto runtime = operation_->group->runtime_handle();
  auto guard = runtime->lock();
  runtime->poll();
  runtime->run_callbacks(guard);
  return operation_->ended();
}

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
int Work::source() const { return operation_ ? operation_->peer : -1; }

}  // namespace tutti
