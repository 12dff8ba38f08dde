// backend.cpp: torch.distributed's backend "tutti" as a c10d::Backend.
// SPDX-License-Identifier: Apache-2.0
//
// Blocking collectives on one contiguous tensor go straight to the library, through entry.hpp, without the GIL and without a frame of
// Python. Everything else is handed to the Python class (group.py), which the backend holds: both make the same calls of the
// same group, so ranks of one group may differ in which of them they use.
#include <pybind11/chrono.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/extension.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <span>

#include "entry.hpp"
#include "works.hpp"

namespace tutti::torch_backend {

using namespace torch_entry;

namespace {

constexpr std::uint8_t unknown = 255;
enum Verb : std::uint8_t { all_reduce, broadcast, all_gather, reduce_scatter, barrier, verb_count };
constexpr std::array verb_names = {"all_reduce", "broadcast", "all_gather", "reduce_scatter", "barrier"};

/// The library's numbers, filled in once by make_known().
std::array<std::uint8_t, verb_count> verbs;
std::array<std::uint8_t, std::size_t(at::ScalarType::NumOptions)> dtypes;

/// The library's number of a reduction that needs nothing else. AVG of integers is a sum and a division.
std::uint8_t number_of(const c10d::ReduceOp& op, at::ScalarType dtype) {
  switch (op.op_) {
    case c10d::ReduceOp::SUM: return 0;
    case c10d::ReduceOp::AVG: return at::isFloatingType(dtype) || at::isComplexType(dtype) ? 1 : unknown;
    case c10d::ReduceOp::PRODUCT: return 2;
    case c10d::ReduceOp::MIN: return 3;
    case c10d::ReduceOp::MAX: return 4;
    case c10d::ReduceOp::BAND: return 5;
    case c10d::ReduceOp::BOR: return 6;
    case c10d::ReduceOp::BXOR: return 7;
    default: return unknown;
  }
}

bool is_plain(const at::Tensor& tensor) {
  return tensor.layout() == at::kStrided && tensor.device().is_cpu() && tensor.is_contiguous() && !tensor.is_conj() &&
         !tensor.is_neg() && dtypes[std::size_t(tensor.scalar_type())] != unknown;
}

Array array_of(const at::Tensor& tensor) {
  return {tensor.data_ptr(), tensor.numel(), dtypes[std::size_t(tensor.scalar_type())]};
}

/// One thread at a time begins a call of a group. The Python class takes the same lock.
class CallLock {
 public:
  void enter() {
    const py::gil_scoped_release release;  // another thread may need the GIL to leave
    mutex.lock();
  }
  void exit(const py::args&) { mutex.unlock(); }
  std::mutex mutex;
};

}  // namespace

class Backend final : public c10d::Backend {
 public:
  /// `group`: tutti.torch.process_group.group.ProcessGroup; `explained`: what makes errors clearer; `wrap`: makes a Backend of such a group.
  Backend(py::object group, py::object entry, py::object explained, py::object wrap)
      : c10d::Backend(group.attr("rank")().cast<int>(), group.attr("size")().cast<int>()),
        group_(std::move(group)),
        capsule_(std::move(entry)),
        explained_(std::move(explained)),
        wrap_(std::move(wrap)) {
    entry_ = static_cast<Entry*>(PyCapsule_GetPointer(capsule_.ptr(), capsule_name));
    if (entry_ == nullptr) throw py::error_already_set();
    timeout_ = group_.attr("timeout").cast<milliseconds>();
  }
  ~Backend() override {
    const py::gil_scoped_acquire gil;
    wrap_ = explained_ = capsule_ = group_ = py::object();
  }

  const std::string getBackendName() const override { return "tutti"; }
  bool supportsSplitting() const override { return true; }
  c10::intrusive_ptr<Options> getBackendOptions() override {
    return c10::make_intrusive<Options>("tutti", timeout_.load());
  }
  py::object group() const { return group_; }
  std::shared_ptr<CallLock> call_lock() const { return call_lock_; }

  void setTimeout(milliseconds timeout) override {
    timeout_ = timeout;
    const py::gil_scoped_acquire gil;
    group_.attr("set_timeout")(timeout);
  }
  void setGroupUid(const std::string& uid) override {
    c10d::Backend::setGroupUid(uid);
    const py::gil_scoped_acquire gil;
    group_.attr("setGroupName")(uid);
  }
  void startCoalescing() override {}
  WorkPtr endCoalescing() override { return nullptr; }
  void setSequenceNumberForGroup() override {}
  void waitForPendingWorks() override {}
  void abort() override { ask("abort"); }
  void shutdown() override { ask("shutdown"); }
  c10::intrusive_ptr<c10d::Backend> split(const c10::intrusive_ptr<c10d::Store>&, const std::vector<int>& ranks,
                                          const c10::intrusive_ptr<Options>& options) override {
    const py::gil_scoped_acquire gil;
    const py::object part = group_.attr("split_group")(ranks, options ? options->timeout : timeout_.load());
    if (part.is_none()) return nullptr;
    return wrap_(part).cast<c10::intrusive_ptr<c10d::Backend>>();
  }
  bool supportsTensorAlloc(c10::DeviceIndex) override { return true; }
  at::Tensor allocateTensor(long size, at::TensorOptions options) override {
    const py::gil_scoped_acquire gil;
    const auto dtype = py::cast(c10::typeMetaToScalarType(options.dtype()));
    return group_.attr("allocate_tensor")(size, py::arg("dtype") = dtype).cast<at::Tensor>();
  }
  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) override {
    const py::gil_scoped_acquire gil;
    const milliseconds timeout = options.timeout.count() > 0 ? options.timeout : timeout_.load();
    group_.attr("monitored_barrier")(timeout, wait_all_ranks);
  }

  // What is served here if it is plain enough.
  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    if (!options.asyncOp && tensors.size() == 1 && is_plain(tensors[0])) {
      const std::uint8_t op = number_of(options.reduceOp, tensors[0].scalar_type());
      const Array array = array_of(tensors[0]);
      if (op != unknown) {
        return run({verbs[all_reduce], op, 0, limit(options.timeout), array, array}, all_reduce_of(tensors), tensors);
      }
    }
    return handed_over(all_reduce_of(tensors), "allreduce", tensors, options);
  }
  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
    if (!options.asyncOp && tensors.size() == 1 && is_plain(tensors[0])) {
      const Array array = array_of(tensors[0]);
      return run({verbs[Verb::broadcast], 0, int(options.rootRank), limit(options.timeout), array, array},
                 broadcast_of(tensors), tensors);
    }
    return handed_over(broadcast_of(tensors), "broadcast", tensors, options);
  }
  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) override {
    if (!options.asyncOp && are_served(output, input) && output.numel() == input.numel() * getSize()) {
      return run({verbs[all_gather], 0, 0, limit(options.timeout), array_of(input), array_of(output)},
                 all_gather_of({&input, 1}), {output});
    }
    return handed_over(all_gather_of({&input, 1}), "all_gather_single", output, input, options);
  }
  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                               const c10d::ReduceScatterOptions& options) override {
    if (!options.asyncOp && are_served(output, input) && input.numel() == output.numel() * getSize()) {
      const std::uint8_t op = number_of(options.reduceOp, input.scalar_type());
      if (op != unknown) {
        return run({verbs[Verb::reduce_scatter], op, 0, limit(options.timeout), array_of(input), array_of(output)},
                   reduce_scatter_of({&input, 1}), {output});
      }
    }
    return handed_over(reduce_scatter_of({&input, 1}), "reduce_scatter_single", output, input, options);
  }
  WorkPtr barrier(const c10d::BarrierOptions& options) override {
    constexpr Shown shown{c10d::OpType::BARRIER, "tutti:barrier"};
    if (options.asyncOp) return handed_over(shown, "barrier", options);
    return run({verbs[Verb::barrier], 0, 0, limit(options.timeout), {}, {}}, shown, {});
  }

  // The Python class's.
  WorkPtr allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    return handed_over(all_reduce_of(tensors), "allreduce", tensors, options);
  }
  WorkPtr allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) override {
    return handed_over(all_reduce_of(tensors), "allreduce_coalesced", tensors,
                       static_cast<const c10d::AllreduceOptions&>(options));
  }
  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& options) override {
    return handed_over({c10d::OpType::REDUCE, "tutti:reduce", tensors}, "reduce", tensors, options);
  }
  WorkPtr allgather(std::vector<Tensors>& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override {
    return handed_over(all_gather_of(inputs), "allgather", outputs, inputs, options);
  }
  WorkPtr allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                              const c10d::AllgatherOptions& options) override {
    return handed_over(all_gather_of(inputs), "allgather_coalesced", outputs, inputs, options);
  }
  WorkPtr allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::AllgatherOptions& options) override {
    return handed_over(all_gather_of(inputs), "all_gather_single_coalesced", outputs, inputs, options);
  }
  WorkPtr gather(std::vector<Tensors>& outputs, Tensors& inputs, const c10d::GatherOptions& options) override {
    return handed_over({c10d::OpType::GATHER, "tutti:gather", inputs}, "gather", outputs, inputs, options);
  }
  WorkPtr scatter(Tensors& outputs, std::vector<Tensors>& inputs, const c10d::ScatterOptions& options) override {
    return handed_over({c10d::OpType::SCATTER, "tutti:scatter", outputs}, "scatter", outputs, inputs, options);
  }
  WorkPtr reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                         const c10d::ReduceScatterOptions& options) override {
    return handed_over(reduce_scatter_of(outputs), "reduce_scatter", outputs, inputs, options);
  }
  WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::ReduceScatterOptions& options) override {
    return handed_over(reduce_scatter_of(inputs), "reduce_scatter_single_coalesced", outputs, inputs, options);
  }
  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_splits,
                        std::vector<int64_t>& input_splits, const c10d::AllToAllOptions& options) override {
    return handed_over({c10d::OpType::ALLTOALL_BASE, "tutti:all_to_all", {&input, 1}}, "all_to_all_single", output,
                       input, output_splits, input_splits, options);
  }
  WorkPtr alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) override {
    return handed_over({c10d::OpType::ALLTOALL, "tutti:all_to_all", inputs}, "alltoall", outputs, inputs, options);
  }
  WorkPtr send(Tensors& tensors, int peer, int tag) override {
    return handed_over({c10d::OpType::SEND, "tutti:send", tensors}, "send", tensors, peer, tag);
  }
  WorkPtr recv(Tensors& tensors, int peer, int tag) override {
    return handed_over({c10d::OpType::RECV, "tutti:recv", tensors}, "recv", tensors, peer, tag);
  }
  WorkPtr recvAnysource(Tensors& tensors, int tag) override {
    return handed_over({c10d::OpType::RECVANYSOURCE, "tutti:recvAnySource", tensors}, "recv_anysource", tensors, tag);
  }

 private:
  static Shown all_reduce_of(std::span<const at::Tensor> inputs) {
    return {c10d::OpType::ALLREDUCE, "tutti:all_reduce", inputs};
  }
  static Shown broadcast_of(std::span<const at::Tensor> inputs) {
    return {c10d::OpType::BROADCAST, "tutti:broadcast", inputs};
  }
  static Shown all_gather_of(std::span<const at::Tensor> inputs) {
    return {c10d::OpType::ALLGATHER, "tutti:all_gather", inputs};
  }
  static Shown reduce_scatter_of(std::span<const at::Tensor> inputs) {
    return {c10d::OpType::REDUCE_SCATTER, "tutti:reduce_scatter", inputs};
  }

  static bool are_served(const at::Tensor& output, const at::Tensor& input) {
    return is_plain(output) && is_plain(input) && output.scalar_type() == input.scalar_type();
  }
  std::int64_t limit(milliseconds timeout) const {
    return std::chrono::nanoseconds(timeout.count() > 0 ? timeout : timeout_.load()).count();
  }

  WorkPtr run(const BlockingCall& call, const Shown& shown, Tensors tensors) {
    auto work = c10::make_intrusive<EndedWork>(shown, std::move(tensors));
    void* pending = nullptr;
    PyObject* error = nullptr;
    {
      const std::lock_guard guard(call_lock_->mutex);
      error = entry_->run(entry_->group, call, pending);
    }
    if (pending != nullptr)
      error = entry_->complete(pending);  // without the lock: other threads may begin calls meanwhile
    if (error != nullptr) raise(error);
    work->end();
    return work;
  }

  [[noreturn]] void raise(PyObject* error) const {
    const py::gil_scoped_acquire gil;
    const py::object clearer = explained_(py::reinterpret_steal<py::object>(error));
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(clearer.ptr())), clearer.ptr());
    throw py::error_already_set();
  }

  void ask(const char* method) {
    const py::gil_scoped_acquire gil;
    group_.attr(method)();
  }

  template <class... Arguments>
  WorkPtr handed_over(const Shown& shown, const char* method, const Arguments&... arguments) {
    auto work = c10::make_intrusive<PythonWork>(shown);
    const py::gil_scoped_acquire gil;
    return PythonWork::of(std::move(work), group_.attr(method)(arguments...));
  }

  py::object group_, capsule_, explained_, wrap_;
  Entry* entry_ = nullptr;
  std::atomic<milliseconds> timeout_{};
  std::shared_ptr<CallLock> call_lock_ = std::make_shared<CallLock>();
};

namespace {

/// `numbers`: _native.torch_entry_numbers(); `names`: the library's names of torch's dtypes.
void make_known(const py::dict& numbers, const py::dict& names) {
  dtypes.fill(unknown);
  for (const auto& [dtype, name] : names) {
    const auto type = reinterpret_cast<THPDtype*>(dtype.ptr())->scalar_type;
    dtypes[std::size_t(type)] = numbers[name].cast<std::uint8_t>();
  }
  for (std::size_t i = 0; i < verb_count; ++i) verbs[i] = numbers[verb_names[i]].cast<std::uint8_t>();
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("make_known", make_known);
  py::class_<CallLock, std::shared_ptr<CallLock>>(m, "CallLock")
      .def("__enter__", &CallLock::enter)
      .def("__exit__", &CallLock::exit);
  py::class_<Backend, c10d::Backend, c10::intrusive_ptr<Backend>>(m, "Backend")
      .def(py::init([](py::object group, py::object entry, py::object explained, py::object wrap) {
        return c10::make_intrusive<Backend>(std::move(group), std::move(entry), std::move(explained), std::move(wrap));
      }))
      .def_property_readonly("process_group", &Backend::group)
      .def_property_readonly("call_lock", &Backend::call_lock);
}

}  // namespace tutti::torch_backend
