// site.cpp: where the program made a call.
// SPDX-License-Identifier: Apache-2.0
#include "bindings/site.hpp"
#include "bindings/gil.hpp"

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <string_view>

#include "group/core.hpp"
#include "group/operation.hpp"
#include "group/runtime.hpp"

namespace tutti::python {
namespace {

/// The folder of a module's file, with a slash at its end.
std::string folder_of(const char* module) {
  auto file = nb::cast<std::string>(nb::module_::import_(module).attr("__file__"));
  return file.substr(0, file.rfind('/') + 1);
}

/// Whose lines a file holds.
enum class Owner : std::uint8_t { program, installed, library };

// The program's own lines are what its author knows. Packages that were installed may call for it, and count if there is nothing
// better; but not this package, Python's library, code without a file, or the frameworks, through which every call may come.
Owner owner_of(std::string_view file) {
  static const auto* own = new std::string(folder_of("tutti"));
  static const auto* standard = new std::string(folder_of("os"));
  if (file.starts_with(*own) || file.starts_with('<')) return Owner::library;
  for (const std::string_view packages : {"/site-packages/", "/dist-packages/"}) {
    const auto at = file.find(packages);
    if (at == std::string_view::npos) continue;
    const std::string_view inside = file.substr(at + packages.size());
    for (const std::string_view framework : {"torch/", "tensorflow/", "keras/", "jax/", "jaxlib/", "numpy/"}) {
      if (inside.starts_with(framework)) return Owner::library;
    }
    return Owner::installed;
  }
  return file.starts_with(*standard) ? Owner::library : Owner::program;
}

}  // namespace

std::string call_site() {
  std::string installed;  // the innermost line of an installed package
  nb::object frame = nb::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame.is_valid()) {
    auto* const raw = reinterpret_cast<PyFrameObject*>(frame.ptr());
    const nb::object code = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(raw)));
    const auto file = nb::cast<std::string>(code.attr("co_filename"));
    const Owner owner = owner_of(file);
    if (owner != Owner::library && (owner == Owner::program || installed.empty())) {
      std::string site = fmt::format("{}:{}", file, PyFrame_GetLineNumber(raw));
      if (owner == Owner::program) return site;
      installed = std::move(site);
    }
    frame = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetBack(raw)));
  }
  return installed;
}

void note_site(const Started& started) {
  if (started.operations.empty()) return;
  const std::string site = call_site();
  const WithoutGil release;
  const auto guard = started.member->core().runtime().lock();
  for (const auto& operation : started.operations) {
    if (!operation->ended()) operation->site = site;
  }
}

}  // namespace tutti::python
