// tensor.cpp: calls on torch's tensors in eager code, without a Python frame between.
// SPDX-License-Identifier: Apache-2.0
//
// Nothing is compiled against torch: elements are found through DLPack's table of C functions, everything else through torch's own
// functions, which tutti/torch/verbs.py hands over.
#include "bindings/tensor.hpp"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <initializer_list>
#include <utility>
#include <vector>

#include <tutti/error.hpp>

#include "bindings/bind.hpp"
#include "bindings/convert.hpp"
#include "parallel/adjoint.hpp"

namespace tutti::python {

using parallel::Adjoint;

namespace {

constexpr std::uint8_t kind_of_tensors = 1;  // in tutti/_kinds.py

/// What verbs.py hands over. Kept for good, as torch itself is.
struct Torch {
  nb::handle tensor, parameter;                // types
  nb::handle modes, transforms, grad_enabled;  // functions without arguments
  nb::handle any_requires_grad;                // (*tensors)
  nb::handle new_thread, written, record;      // see verbs.py
};

Torch& torch() {  // under the GIL
  static Torch functions;
  return functions;
}

/// The result has the shape of the input.
bool keeps_shape(const Call& call, int rank) { return tutti::keeps_shape(call.verb) || gives_input_back(call, rank); }

/// A call that autograd records: what backward needs to know of it.
struct RecordedCall {
  Call call;
  std::shared_ptr<Member> member;
  nb::object timeout;
  View input;         // its memory may be gone by then: only the shape counts
  nb::object result;  // on its way into autograd's graph

  [[nodiscard]] Adjoint adjoint() const {
    const int rank = member->rank(), size = member->size();
    return keeps_shape(call, rank) ? adjoint_of(call, rank, size) : adjoint_of(call, input.shape(), rank, size);
  }
};

nb::object called(nb::handle function, std::span<PyObject* const> arguments) {
  PyObject* const made = PyObject_Vectorcall(function.ptr(), arguments.data(), arguments.size(), nullptr);
  if (made == nullptr) throw nb::python_error();
  return nb::steal(made);
}

nb::object called(nb::handle function, std::initializer_list<PyObject*> arguments = {}) {
  return called(function, std::span(arguments.begin(), arguments.size()));
}

bool is_true(const nb::object& found) { return found.ptr() == Py_True; }

bool asks(nb::handle function) { return is_true(called(function)); }

PyObject* name(const char* text) { return PyUnicode_InternFromString(text); }  // kept for good

bool requires_grad(nb::handle tensor) {
  static PyObject* const attribute = name("requires_grad");
  return is_true(nb::steal(PyObject_GetAttr(tensor.ptr(), attribute)));
}

bool method_says(nb::handle tensor, PyObject* method) {
  PyObject* const self = tensor.ptr();
  PyObject* const answer = PyObject_VectorcallMethod(method, &self, 1, nullptr);
  if (answer == nullptr) throw nb::python_error();
  return is_true(nb::steal(answer));
}

/// Elements that torch keeps negated or conjugated are not what lies in memory.
bool lies_as_it_is(nb::handle tensor, DType dtype) {
  static PyObject *const is_neg = name("is_neg"), *const is_conj = name("is_conj");
  return !method_says(tensor, is_neg) && !(is_complex(dtype) && method_says(tensor, is_conj));
}

bool is_tensor(nb::handle object) {
  const PyObject* const type = reinterpret_cast<PyObject*>(Py_TYPE(object.ptr()));
  return torch().tensor.is_valid() && (type == torch().tensor.ptr() || type == torch().parameter.ptr());
}

/// Whether somebody records what is done with tensors. (Those that torch.func has wrapped have no memory, and are not seen.)
bool is_watched() { return PyLong_AsLong(called(torch().modes).ptr()) != 0; }

/// What cannot be seen in memory is refused by verbs.py, in words.
bool view_plain(nb::handle tensor, View& view) {
  try {
    return view_exchanged(tensor, view) && lies_as_it_is(tensor, view.dtype());
  } catch (const Error&) {
    return false;
  }
}

/// A new tensor for the result. Null: torch cannot make it, which verbs.py says in words.
nb::object result_for(const Call& call, const Member& member, const View& view) {
  const bool is_alike = keeps_shape(call, member.rank());
  const Sizes shape = is_alike ? Sizes() : output_shape(call, view.shape(), member.rank(), member.size());
  try {
    return array_over(torch().tensor, new_array(view.dtype(), is_alike ? view.shape() : shape));
  } catch (const nb::python_error&) {
    return {};
  }
}

/// One tensor on its way.
struct TensorCall {
  const std::shared_ptr<Member>& member;
  Call call;
  nb::handle x, timeout;
  View input{};
  nb::object result{};

  void run(bool differentiated) {
    Terms terms{.input = input, .differentiated = differentiated, .timeout = timeout_from(timeout)};
    if (call.verb == Verb::broadcast) {
      if (member->rank() != call.root) terms.input = View();
      terms.learns = std::make_shared<Array>();  // ranks may have passed None, and ask for the shape
    }
    view_exchanged(result, terms.output);
    run_call(member, call, terms);
  }

  /// Runs it, and enters it in autograd's graph. Null: its gradient is more than a call.
  nb::object run_recorded() {
    RecordedCall recorded{.call = call, .member = member, .timeout = nb::borrow(timeout), .input = input, .result = {}};
    const auto kind = prepared(member, call, [&] { return recorded.adjoint().kind; });
    if (kind != Adjoint::Kind::linear) return {};
    run(true);
    recorded.result = std::move(result);
    const nb::object note = nb::cast(std::move(recorded));
    const nb::object outputs = called(torch().record, {x.ptr(), note.ptr()});
    return nb::borrow(PyTuple_GET_ITEM(outputs.ptr(), 0));
  }
};

/// torch.autograd.Function.forward of a call that has run already.
nb::object forward(nb::handle ctx, nb::handle, nb::handle recorded) {
  static PyObject *const attribute = name("recorded"), *const save = name("to_save");
  if (PyObject_SetAttr(ctx.ptr(), attribute, recorded.ptr()) != 0) throw nb::python_error();
  const nb::object thread = called(torch().new_thread);
  const nb::object saved = nb::steal(PyTuple_Pack(1, thread.ptr()));
  if (PyObject_SetAttr(ctx.ptr(), save, saved.ptr()) != 0) throw nb::python_error();
  const nb::object result = std::exchange(nb::cast<RecordedCall&>(recorded).result, nb::object());
  return nb::steal(PyTuple_Pack(2, result.ptr(), thread.ptr()));
}

}  // namespace

bool is_tensor_type(nb::handle type) { return torch().tensor.is_valid() && type.is(torch().tensor); }

bool views_of_tensors(std::span<const nb::object> tensors, std::vector<View>& views) {
  if (is_watched()) return false;
  for (const nb::object& tensor : tensors) {
    if (!is_tensor(tensor) || !view_plain(tensor, views.emplace_back())) return false;
  }
  static_assert(sizeof(nb::object) == sizeof(PyObject*));
  const auto* const all = reinterpret_cast<PyObject* const*>(tensors.data());
  return !asks(torch().grad_enabled) || !is_true(called(torch().any_requires_grad, std::span(all, tensors.size())));
}

bool view_of_tensor(nb::handle object, View& view) {
  if (!is_tensor(object) || is_watched() || (requires_grad(object) && asks(torch().grad_enabled))) return false;
  return view_plain(object, view);
}

nb::object apply_to_tensor(const std::shared_ptr<Member>& member, const Call& given, nb::handle x, nb::handle out,
                           nb::handle timeout) {
  if (!is_tensor(x) || learns_sizes(given) || given.verb == Verb::scatter || is_watched()) return {};
  const bool differentiated = requires_grad(x) && asks(torch().grad_enabled);
  TensorCall call{.member = member, .call = given, .x = x, .timeout = timeout};
  if (!view_plain(x, call.input)) return {};
  if (given.verb == Verb::broadcast) call.call.kind = kind_of_tensors;
  if (!out.is_none()) {
    View view;
    if (differentiated || !view_of_tensor(out, view)) return {};
    call.result = nb::borrow(out);
    call.run(false);
    return called(torch().written, {out.ptr()});
  }
  call.result = prepared(member, given, [&] { return result_for(given, *member, call.input); });
  if (!call.result.is_valid()) return {};
  if (differentiated) return asks(torch().transforms) ? nb::object() : call.run_recorded();
  call.run(false);
  return std::move(call.result);
}

void bind_tensor(nb::module_& m) {
  nb::class_<RecordedCall>(m, "RecordedCall", "What backward needs to know of a call that torch's autograd recorded.")
      .def_prop_ro("call", [](const RecordedCall& r) { return r.call; })
      .def_prop_ro("adjoint", &RecordedCall::adjoint)
      .def_prop_ro("group", [](const RecordedCall& r) { return r.member; })
      .def_prop_ro("timeout", [](const RecordedCall& r) { return r.timeout; })
      .def_prop_ro("input_shape", [](const RecordedCall& r) {
        return nb::tuple(nb::cast(Sizes(r.input.shape().begin(), r.input.shape().end())));
      });
  m.def("record_forward", forward, "torch.autograd.Function.forward of a call that has run already.");
  m.def(
      "serve_tensors",
      [](const nb::dict& functions) {
        const auto kept = [&](const char* key) { return nb::object(functions[key]).release(); };
        torch() = {.tensor = kept("Tensor"),
                   .parameter = kept("Parameter"),
                   .modes = kept("modes"),
                   .transforms = kept("transforms"),
                   .grad_enabled = kept("grad_enabled"),
                   .any_requires_grad = kept("any_requires_grad"),
                   .new_thread = kept("new_thread"),
                   .written = kept("written"),
                   .record = kept("record")};
      },
      nb::arg("functions"),
      "Calls on torch's tensors are served in the core from now on, by these types and functions.");
}

}  // namespace tutti::python
