// works.hpp: calls of the torch backend in C++, as c10d and profilers know them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/record_function.h>
#include <torch/csrc/jit/python/pybind_utils.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/extension.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <chrono>
#include <optional>
#include <span>

namespace tutti::torch_backend {

using Tensors = std::vector<at::Tensor>;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;
using std::chrono::milliseconds;

/// What profilers show of a call.
struct Shown {
  c10d::OpType type;
  const char* title;
  std::span<const at::Tensor> inputs{};
};

/// A call that profilers see from its start to its end, if any look.
class ShownWork : public c10d::Work {
 public:
  explicit ShownWork(const Shown& shown)
      : Work(-1, shown.type, at::hasCallbacks() ? shown.title : nullptr,
             at::hasCallbacks() ? std::optional(Tensors(shown.inputs.begin(), shown.inputs.end())) : std::nullopt) {}
  void end() { finish(); }

 protected:
  [[nodiscard]] bool is_seen() const { return recordFunctionEndCallback_ != nullptr; }
};

/// A call that is over once it has been made.
class EndedWork final : public ShownWork {
 public:
  explicit EndedWork(const Shown& shown, Tensors tensors) : ShownWork(shown), tensors_(std::move(tensors)) {}
  bool wait(milliseconds) override { return true; }
  void synchronize() override {}
  Tensors result() override { return tensors_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    const auto future = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
    future->markCompleted(c10::IValue(tensors_));
    return future;
  }

 private:
  Tensors tensors_;
};

/// A call that the Python class has begun.
class PythonWork final : public ShownWork {
 public:
  using ShownWork::ShownWork;
  /// `work` is the Python class's. With the GIL.
  static WorkPtr of(c10::intrusive_ptr<PythonWork> self, py::object work) {
    self->work_ = std::move(work);
    if (self->is_seen()) {
      const auto end = py::cpp_function([self](const py::object&) { self->end(); });
      self->work_.attr("get_future")().attr("add_done_callback")(end);  // also where nobody waits
    }
    return self;
  }
  ~PythonWork() override {
    const py::gil_scoped_acquire gil;
    work_ = py::object();
  }
  bool isCompleted() override { return ask<bool>("is_completed"); }
  bool isSuccess() const override { return ask<bool>("is_success"); }
  int sourceRank() const override { return ask<int>("source_rank"); }
  Tensors result() override { return ask<Tensors>("result"); }
  void synchronize() override { wait(kNoTimeout); }
  bool wait(milliseconds timeout) override {
    const py::gil_scoped_acquire gil;
    const bool is_well = work_.attr("wait")(timeout).cast<bool>();
    end();
    return is_well;
  }
  std::exception_ptr exception() const override {
    const py::gil_scoped_acquire gil;
    const py::object error = work_.attr("exception")();
    if (error.is_none()) return nullptr;
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
    return std::make_exception_ptr(py::error_already_set());
  }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    const py::gil_scoped_acquire gil;
    return work_.attr("get_future")().cast<std::shared_ptr<torch::jit::PythonFutureWrapper>>()->fut;
  }
  c10::intrusive_ptr<c10::ivalue::Future> getFutureResult() override { return getFuture(); }

 private:
  template <class Answer>
  Answer ask(const char* method) const {
    const py::gil_scoped_acquire gil;
    return work_.attr(method)().cast<Answer>();
  }
  py::object work_;
};

}  // namespace tutti::torch_backend
