// calling_frame.hpp: which line of Python is being executed, in nanoseconds.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Python.h>

namespace tutti::python {

/// The instruction of a frame that made a call. Borrowed.
struct CallingFrame {
  PyObject* code = nullptr;  // null: there is none, or this Python does not show its frames
  const void* instruction = nullptr;
};

/// The innermost frame whose code `counts`. Under the GIL.
CallingFrame calling_frame(bool (*counts)(PyObject* code));

}  // namespace tutti::python
