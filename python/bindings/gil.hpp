// gil.hpp: giving the GIL up around what may wait, and taking it back.
// SPDX-License-Identifier: Apache-2.0
//
// While Python shuts down, a thread that asks for the GIL back is ended there, by unwinding its stack, which no frame of C++ that
// promises not to throw survives: a daemon thread inside a call would abort a process that has done its work. Such a thread stays
// where it is instead, and ends with the process.
#pragma once

#include <unistd.h>

#include "bindings/bind.hpp"

namespace tutti::python {

inline void take_gil_back(PyThreadState* state) {
  struct Unwound {
    bool by_python = true;
    ~Unwound() {
      while (by_python) pause();
    }
  } unwound;
  PyEval_RestoreThread(state);
  unwound.by_python = false;
}

class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  ~WithoutGil() noexcept(false) { take_gil_back(state_); }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

/// What a function gives that needs no GIL.
template <class Run>
auto without_gil(Run run) {
  const WithoutGil release;
  return run();
}

}  // namespace tutti::python
