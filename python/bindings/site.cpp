// site.cpp: where the program made a call.
// SPDX-License-Identifier: Apache-2.0
#include "bindings/site.hpp"
#include "bindings/calling_frame.hpp"
#include "bindings/gil.hpp"

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <array>
#include <cstdint>
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

/// Whether the lines of this code are the program's. Asked for the same few again and again.
bool is_program(PyObject* code) {
  struct Answer {
    PyObject* code = nullptr;
    bool is_program = false;
  };
  constexpr std::size_t answers = 256;
  static auto* const known = new std::array<Answer, answers>;
  Answer& answer = (*known)[(reinterpret_cast<std::uintptr_t>(code) >> 4) * 0x9e3779b97f4a7c15u >> 56];
  if (answer.code == code) return answer.is_program;
  const auto file = nb::cast<std::string>(nb::handle(code).attr("co_filename"));
  Py_INCREF(code);
  nb::object(nb::steal(answer.code)).reset();
  answer = {.code = code, .is_program = owner_of(file) == Owner::program};
  return answer.is_program;
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

// Lines are remembered by the code and the instruction that made the call. What is remembered keeps its code, so that its address means
// no other one.
std::uint32_t recorded_site(const Member& member) {
  struct Place {
    PyObject* code = nullptr;
    const void* instruction = nullptr;
    std::uint32_t site = 0;
  };
  constexpr std::size_t places = 512;
  static auto* const known = new std::array<Place, places>;
  static record::Recorder* known_by = nullptr;
  record::Recorder* const recorder = member.core().runtime().parts().recorder.get();
  if (recorder == nullptr) return 0;
  if (recorder != known_by) {
    for (Place& place : *known) place.instruction = nullptr;
    known_by = recorder;
  }
  const CallingFrame frame = calling_frame([](PyObject* code) { return is_program(code); });
  if (frame.code == nullptr) return 0;
  const auto hash = (reinterpret_cast<std::uintptr_t>(frame.instruction) >> 1) * 0x9e3779b97f4a7c15u;
  Place& place = (*known)[hash >> 55];
  if (place.instruction == frame.instruction && place.code == frame.code) return place.site;
  const std::uint32_t site = recorder->site(call_site());
  Py_INCREF(frame.code);
  nb::object(nb::steal(place.code)).reset();
  place = {.code = frame.code, .instruction = frame.instruction, .site = site};
  return site;
}

void note_site(const Started& started) {
  if (started.operations.empty()) return;
  const std::uint32_t place = recorded_site(*started.member);
  const std::string site = call_site();
  const WithoutGil release;
  Runtime& runtime = started.member->core().runtime();
  const auto guard = runtime.lock();
  for (const auto& operation : started.operations) {
    if (!operation->ended()) operation->site = site;
    if (place != 0 && runtime.parts().recorder) runtime.parts().recorder->note_site(operation->record, place);
  }
}

}  // namespace tutti::python
