// signals.cpp: waits of the core hear Ctrl-C and alarms.
// SPDX-License-Identifier: Apache-2.0
#include "bindings/signals.hpp"

#include <pthread.h>

#include "group/runtime.hpp"

namespace tutti::python {
namespace {

class Signals final : public WaitHook {
 public:
  void look() override {
    if (pthread_self() != main_thread) return;
    const nb::gil_scoped_acquire gil;
    check_signals();
  }

  unsigned long main_thread = 0;
};

Signals& signals() {
  static auto* const instance = new Signals;
  return *instance;
}

}  // namespace

void learn_main_thread() {
  const nb::object thread = nb::module_::import_("threading").attr("main_thread")();
  signals().main_thread = nb::cast<unsigned long>(thread.attr("ident"));
}

void hear_signals(Runtime& runtime) { runtime.look_while_waiting(signals()); }

}  // namespace tutti::python
