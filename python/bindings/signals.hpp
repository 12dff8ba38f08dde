// signals.hpp: waits of the core hear Ctrl-C and alarms, whose handlers Python runs on its main thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bindings/bind.hpp"
#include "bindings/gil.hpp"

namespace tutti {
class Runtime;
}

namespace tutti::python {

/// Where Python runs handlers: on the child's only thread, after a fork. With the GIL; runs Python code, so a handler may raise in it.
void learn_main_thread();
/// Has this rank's waits end when a handler raises.
void hear_signals(Runtime& runtime);

/// Raises what a handler raised.
inline void check_signals() {
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

}  // namespace tutti::python
