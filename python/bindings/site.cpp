// site.cpp: where the program made a call.
// SPDX-License-Identifier: Apache-2.0
#include "bindings/site.hpp"

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <string_view>

#include "group/core.hpp"
#include "group/operation.hpp"
#include "group/runtime.hpp"

namespace tutti::python {
namespace {

/// The folder of the package, with a slash at its end.
const std::string& own_folder() {
  static const auto* folder = new std::string([] {
    auto file = nb::cast<std::string>(nb::module_::import_("tutti").attr("__file__"));
    return file.substr(0, file.rfind('/') + 1);
  }());
  return *folder;
}

}  // namespace

std::string call_site() {
  nb::object frame = nb::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame.is_valid()) {
    auto* const raw = reinterpret_cast<PyFrameObject*>(frame.ptr());
    const nb::object code = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(raw)));
    const auto file = nb::cast<std::string>(code.attr("co_filename"));
    if (!file.starts_with(own_folder())) return fmt::format("{}:{}", file, PyFrame_GetLineNumber(raw));
    frame = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetBack(raw)));
  }
  return {};
}

void note_site(const Started& started) {
  if (started.operations.empty()) return;
  const std::string site = call_site();
  const nb::gil_scoped_release release;
  const auto guard = started.member->core().runtime().lock();
  for (const auto& operation : started.operations) {
    if (!operation->ended()) operation->site = site;
  }
}

}  // namespace tutti::python
