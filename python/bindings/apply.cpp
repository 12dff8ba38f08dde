// apply.cpp: where every verb of the package comes by: NumPy arrays are served here, everything else by tutti/_dispatch.py.
// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/shared_ptr.h>

#include <array>

#include <tutti/error.hpp>

#include "bindings/bind.hpp"
#include "bindings/convert.hpp"
#include "bindings/numpy.hpp"
#include "bindings/work.hpp"

namespace tutti::python {
namespace {

/// The result has the shape of the input.
bool keeps_shape(const Call& call, int rank) {
  switch (call.verb) {
    case Verb::all_reduce:
    case Verb::reduce:
    case Verb::scan:
    case Verb::exscan:
    case Verb::permute: return true;
    case Verb::gather: return rank != call.root;
    default: return false;
  }
}

nb::object result_for(const Call& call, const Member& member, nb::handle x, const View& view) {
  if (keeps_shape(call, member.rank())) return new_numpy_like(x, view.shape());
  return new_numpy_like(x, output_shape(call, view.shape(), member.rank(), member.size()));
}

/// In eager code only the root of a broadcast or scatter need have an array.
bool root_tells(const Call& call) { return call.verb == Verb::broadcast || call.verb == Verb::scatter; }

nb::object learned(const std::shared_ptr<Array>& array) {
  const nb::object owner = nb::cast(*array);
  return numpy_over(array->view, owner);
}

nb::object as_numpy() {
  return nb::cpp_function([](nb::object array) { return array.attr("numpy")(); });
}

nb::object apply_numpy(const Call& call, nb::handle x, nb::handle out, const std::shared_ptr<Member>& member,
                       bool async_op, Duration timeout) {
  Terms terms{.input = view_of_numpy(x), .timeout = timeout};
  const bool at_root = member->rank() == call.root;
  if (root_tells(call) && !at_root) {
    terms.input = View();
  }
  const bool learns = learns_sizes(call) || root_tells(call);
  if (learns) terms.learns = std::make_shared<Array>();
  nb::object result = nb::borrow(out);
  if (out.is_none() && !learns) {
    result = result_for(call, *member, x, terms.input);
  } else if (out.is_none() && call.verb == Verb::broadcast && !at_root) {
    result = new_numpy_like(x, view_of_numpy(x).shape());  // what the caller passed says what it expects
  }
  if (!result.is_none()) terms.output = view_of_numpy(result);
  const bool gives_learned = result.is_none();
  if (!async_op) {
    run_call(member, call, terms, nb::make_tuple(x, result));
    return gives_learned ? learned(terms.learns) : result;
  }
  Started started;
  {
    const nb::gil_scoped_release release;
    started = start_call(member, call, terms);
  }
  PendingWork work(std::move(started), nb::make_tuple(x, result), result,
                   gives_learned ? as_numpy() : nb::object(nb::none()));
  if (gives_learned) work.learns = terms.learns;
  return nb::cast(std::move(work));
}

nb::object dispatch(const Call& call, nb::handle x, nb::handle out, const std::shared_ptr<Member>& member,
                    bool async_op, nb::handle timeout) {
  static PyObject* const function =
      nb::object(nb::module_::import_("tutti._dispatch").attr("dispatch")).release().ptr();
  return nb::handle(function)(call, x, out, member, async_op, timeout);
}

nb::object apply(const Call& call, nb::handle x, nb::handle out, nb::handle group, bool async_op, nb::handle timeout) {
  forget_ended();
  const auto member = group.is_none() ? world() : nb::cast<std::shared_ptr<Member>>(group);
  if (is_numpy(x) && (out.is_none() || is_numpy(out))) {
    return apply_numpy(call, x, out, member, async_op, timeout_from(timeout));
  }
  return dispatch(call, x, out, member, async_op, timeout);
}

}  // namespace

void bind_apply(nb::module_& m) {
  m.def("apply", apply, nb::arg("call"), nb::arg("x").none(), nb::arg("out").none(), nb::arg("group").none(),
        nb::arg("async_op"), nb::arg("timeout").none());
}

}  // namespace tutti::python
