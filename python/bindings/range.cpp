// range.cpp: calls as ranges in what a profiler shows.
// SPDX-License-Identifier: Apache-2.0
#include "bindings/range.hpp"

#include <nanobind/stl/string.h>

#include <string>

namespace tutti::python {

// Raised, whatever it is: a signal's handler may have raised it, and the call has not begun.
void Range::begin(std::string_view name) {
  if (name.empty()) return;
  const nb::str text(name.data(), name.size());
  opened_ = PyObject_CallFunctionObjArgs(profilers.begin, text.ptr(), nullptr);
  if (opened_ == nullptr) throw nb::python_error();
}

// The call is over: what goes wrong here is printed, and an interrupt comes again.
void Range::end() noexcept {
  PyObject* const result = PyObject_CallFunctionObjArgs(profilers.end, opened_, nullptr);
  if (result == nullptr) {
    const bool is_interrupt = PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) != 0;
    is_interrupt ? PyErr_Clear() : PyErr_WriteUnraisable(profilers.end);
    if (is_interrupt) PyErr_SetInterrupt();
  }
  Py_XDECREF(result);
  Py_DECREF(opened_);
}

namespace {

void watch_ranges(nb::handle begin, nb::handle end, nb::handle flags, const std::string& flag, bool always) {
  profilers.begin = begin.inc_ref().ptr();
  profilers.end = end.inc_ref().ptr();
  if (!flags.is_none()) {
    profilers.flag = PyUnicode_InternFromString(flag.c_str());
    profilers.flags = flags.inc_ref().ptr();
  }
  profilers.always = profilers.always || always;
}

}  // namespace

void bind_ranges(nb::module_& m) {
  m.def("watch_ranges", watch_ranges, nb::arg("begin"), nb::arg("end"), nb::arg("flags").none() = nb::none(),
        nb::arg("flag") = "", nb::arg("always") = false,
        "Has begin(name) and end(what that gave) called around calls: while flags[flag] is True, or always.");
}

}  // namespace tutti::python
