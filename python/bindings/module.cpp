// module.cpp: the module tutti._native, put together.
// SPDX-License-Identifier: Apache-2.0
#include "bindings/bind.hpp"

#include <nanobind/stl/string.h>

#include <stdexcept>

namespace tutti::python {

void bind_store_server(nb::module_& m);
void bind_job_store(nb::module_& m);
void bind_records(nb::module_& m);
void bind_ranges(nb::module_& m);

namespace {

/// What becomes an ImportError: the module's tables are the process's own and are guarded by the one lock of the main interpreter.
void check_interpreter() {
  if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
    throw std::runtime_error(
        "tutti cannot be imported in a subinterpreter: ranks are processes, and a process is one rank; import it in "
        "the main "
        "interpreter, or start more ranks (tuttirun, tutti.spawn)");
  }
  const nb::module_ sys = nb::module_::import_("sys");
  if (nb::hasattr(sys, "_is_gil_enabled") && !nb::cast<bool>(sys.attr("_is_gil_enabled")())) {
    throw std::runtime_error(
        "tutti needs the global interpreter lock, and this Python was told to run without it (-X gil=0 or "
        "PYTHON_GIL=0); leave "
        "that out, and a free-threaded Python takes the lock when tutti is imported");
  }
}

}  // namespace
}  // namespace tutti::python

NB_MODULE(_native, m) {
  using namespace tutti::python;
  check_interpreter();
  nb::set_leak_warnings(false);  // caches of calls, and frameworks that keep functions, live to the very end
  m.doc() = "The core of Tutti. Its names are used by the package tutti, which is what people import.";
  m.attr("version") = TUTTI_VERSION;
  bind_errors(m);
  bind_call(m);
  bind_array(m);
  bind_work(m);
  bind_gpu(m);
  bind_group(m);
  bind_apply(m);
  bind_found_message(m);
  bind_fused(m);
  bind_prepared(m);
  bind_tensor(m);
  bind_torch_entry(m);
  bind_init(m);
  bind_parallel(m);
  bind_kernels(m);
  bind_store_bridge(m);
  bind_store_server(m);
  bind_job_store(m);
  bind_records(m);
  bind_ranges(m);
  bind_completions(m);
  bind_logging(m);
#ifdef TUTTI_WITH_XLA
  bind_jax(m);
#endif
}
