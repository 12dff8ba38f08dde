// torch_entry.cpp: calls of the torch backend that is compiled apart, see tutti/torch/process_group/cxx/entry.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "tutti/torch/process_group/cxx/entry.hpp"

#include <nanobind/stl/shared_ptr.h>

#include <array>
#include <memory>

#include <tutti/error.hpp>

#include "bindings/bind.hpp"
#include "bindings/errors.hpp"
#include "bindings/running.hpp"

namespace tutti::python {
namespace {

using torch_entry::BlockingCall;
using torch_entry::Entry;

struct Opened {
  std::shared_ptr<Member> member;
  Entry entry;
};

View view_of(const torch_entry::Array& array) {
  if (array.data == nullptr && array.count == 0 && array.dtype == 0) return {};
  return {array.data, DType(array.dtype), std::array{array.count}};
}

/// The exception that is set, as an object of its own.
PyObject* take_python_error() {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  if (trace != nullptr) PyException_SetTraceback(value, trace);
  Py_XDECREF(type);
  Py_XDECREF(trace);
  return value;
}

PyObject* exception_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const Error&) {
    set_python_error(thrown);
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return take_python_error();
}

/// Runs `work` with the GIL; what it throws becomes an exception of Python.
template <class Work>
PyObject* with_gil(Work work) noexcept {
  const PyGILState_STATE state = PyGILState_Ensure();
  PyObject* error = nullptr;
  try {
    work();
  } catch (...) {
    error = exception_of(std::current_exception());
  }
  PyGILState_Release(state);
  return error;
}

PyObject* run(void* group, const BlockingCall& asked, void*& pending) noexcept {
  try {
    Call call;
    call.verb = Verb(asked.verb);
    call.op = Op(Op::Kind(asked.op));
    call.root = asked.root;
    const Terms terms{.input = view_of(asked.input),
                      .output = view_of(asked.output),
                      .timeout = std::chrono::nanoseconds(asked.timeout_ns)};
    Started started = run_within_spin_budget(static_cast<Opened*>(group)->member, call, terms);
    if (!started.operations.empty()) pending = new Started(std::move(started));
    return nullptr;
  } catch (...) {
    return with_gil([thrown = std::current_exception()] { std::rethrow_exception(thrown); });
  }
}

PyObject* complete_pending(void* pending) noexcept {
  const std::unique_ptr<Started> started(static_cast<Started*>(pending));
  return with_gil([&] { complete(*started); });
}

}  // namespace

void bind_torch_entry(nb::module_& m) {
  m.def(
      "torch_entry",
      [](const std::shared_ptr<Member>& member) {
        auto opened = std::make_unique<Opened>(member);
        opened->entry = {.group = opened.get(), .run = run, .complete = complete_pending};
        auto capsule = nb::steal(PyCapsule_New(&opened->entry, torch_entry::capsule_name, [](PyObject* self) {
          auto* const entry = static_cast<Entry*>(PyCapsule_GetPointer(self, torch_entry::capsule_name));
          delete static_cast<Opened*>(entry->group);
        }));
        static_cast<void>(opened.release());
        return capsule;
      },
      nb::arg("group"), "What the torch backend in C++ calls this group through.");
  m.def(
      "torch_entry_numbers",
      [] {
        nb::dict numbers;
        for (int i = 0; i < dtype_count; ++i) {
          const std::string_view name = name_of(DType(i));
          numbers[nb::str(name.data(), name.size())] = i;
        }
        for (const Verb verb :
             {Verb::all_reduce, Verb::broadcast, Verb::all_gather, Verb::reduce_scatter, Verb::barrier}) {
          const std::string_view name = name_of(verb);
          numbers[nb::str(name.data(), name.size())] = int(verb);
        }
        return numbers;
      },
      "The library's numbers of dtypes and verbs, by name.");
}

}  // namespace tutti::python
