// range.hpp: calls as ranges in what a profiler shows.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <string_view>

namespace tutti::python {

namespace nb = nanobind;

/// Who looks on. Set by _process/ranges.py.
struct Profilers {
  PyObject* flags = nullptr;  // a dictionary: torch.autograd.profiler's names
  PyObject* flag = nullptr;   // the name in it that is True while torch's profiler runs
  PyObject* begin = nullptr;  // functions: of a name, of what that one gave
  PyObject* end = nullptr;
  bool always = false;  // another one is there all the time
};
inline Profilers profilers{};  // under the GIL

/// One range, for as long as it lives; without a name: none. Nobody looks on: it costs a look into a dictionary. With the GIL.
class Range {
 public:
  explicit Range(std::string_view name) {
    if (is_watched()) [[unlikely]]
      begin(name);
  }
  ~Range() {
    if (opened_ != nullptr) [[unlikely]]
      end();
  }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

 private:
  static bool is_watched() {
    if (profilers.always) return true;
    return profilers.flags != nullptr && PyDict_GetItemWithError(profilers.flags, profilers.flag) == Py_True;
  }
  void begin(std::string_view name);
  void end() noexcept;

  PyObject* opened_ = nullptr;
};

void bind_ranges(nb::module_& m);

}  // namespace tutti::python
