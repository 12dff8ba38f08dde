// native.cpp: the backend that plans: any verb, any dtype, over any transport.
// SPDX-License-Identifier: Apache-2.0
#include "backend/native.hpp"

#include "backend/collective.hpp"

namespace tutti {

NativeBackend::NativeBackend(GroupFacts facts, Table table, Transport& transport)
    : facts_(std::move(facts)), transport_(transport), plans_(std::move(table)) {}

NativeBackend::~NativeBackend() = default;

std::optional<std::string> NativeBackend::refuses(const Request& request) const {
  for (const View* view : {&request.input, &request.output}) {
    if (view->present() && view->device().kind != Device::Kind::cpu) {
      return "the native backend works on memory of the CPU; copy the array there first";
    }
  }
  return std::nullopt;
}

Collective& NativeBackend::idle_task() {
  if (idle_.empty()) {
    tasks_.push_back(std::make_unique<Collective>(*this));
    idle_.push_back(tasks_.back().get());
  }
  // Only while nothing runs may plans be let go of: executions point to them.
  if (idle_.size() == tasks_.size()) plans_.trim();
  Collective* task = idle_.back();
  idle_.pop_back();
  return *task;
}

Task& NativeBackend::start(const Request& request) {
  Collective& task = idle_task();
  try {
    task.start(request);
  } catch (...) {
    task.cancel();
    idle_.push_back(&task);
    throw;
  }
  return task;
}

Task& NativeBackend::adopt(const Request& request, Execution& execution) {
  Collective& task = idle_task();
  task.adopt(request, execution);
  return task;
}

std::optional<ExecutionStart> NativeBackend::direct(const Task& task) const {
  return static_cast<const Collective&>(task).direct();
}

void NativeBackend::take_back(Collective& task) { idle_.push_back(&task); }

}  // namespace tutti
