// calling_frame.cpp: walks the interpreter's own frames.
// SPDX-License-Identifier: Apache-2.0
//
// The frames that Python's interface shows are objects, which are made for whoever asks: 100 ns per call of ours. These are where the
// interpreter keeps them. Their layout belongs to one version of Python: others are left out, and calls there have a line only
// if they take long.
#define Py_BUILD_CORE 1
#include "bindings/calling_frame.hpp"

#if PY_VERSION_HEX >= 0x030b0000 && PY_VERSION_HEX < 0x030e0000 && !defined(Py_LIMITED_API) && !defined(Py_GIL_DISABLED)
#define TUTTI_READS_FRAMES
#endif

#ifdef TUTTI_READS_FRAMES
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wold-style-cast"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wshadow"
#include <internal/pycore_frame.h>
#pragma GCC diagnostic pop
#endif

namespace tutti::python {

#ifdef TUTTI_READS_FRAMES
namespace {

const _PyInterpreterFrame* innermost() {
  PyThreadState* const thread = PyThreadState_Get();
#if PY_VERSION_HEX >= 0x030d0000
  return thread->current_frame;
#else
  return thread->cframe->current_frame;
#endif
}

CallingFrame place_of(const _PyInterpreterFrame& frame) {
#if PY_VERSION_HEX >= 0x030d0000
  return {.code = frame.f_executable, .instruction = frame.instr_ptr};
#else
  return {.code = reinterpret_cast<PyObject*>(frame.f_code), .instruction = frame.prev_instr};
#endif
}

}  // namespace

CallingFrame calling_frame(bool (*counts)(PyObject* code)) {
  constexpr int depth_max = 64;
  const _PyInterpreterFrame* frame = innermost();
  for (int depth = 0; frame != nullptr && depth < depth_max; ++depth, frame = frame->previous) {
#if PY_VERSION_HEX >= 0x030c0000
    if (frame->owner == FRAME_OWNED_BY_CSTACK) continue;  // where C calls Python
#endif
    const CallingFrame place = place_of(*frame);
    if (place.code != nullptr && PyCode_Check(place.code) && counts(place.code)) return place;
  }
  return {};
}
#else
CallingFrame calling_frame(bool (*)(PyObject*)) { return {}; }
#endif

}  // namespace tutti::python
