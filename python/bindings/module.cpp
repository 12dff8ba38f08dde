// module.cpp: the module tutti._native, put together.
// SPDX-License-Identifier: Apache-2.0
#include "bindings/bind.hpp"

namespace tutti::python {
void bind_store_server(nb::module_& m);
}

NB_MODULE(_native, m) {
  using namespace tutti::python;
  nb::set_leak_warnings(false);  // caches of calls, and frameworks that keep functions, live to the very end
  m.doc() = "The core of Tutti. Its names are used by the package tutti, which is what people import.";
  m.attr("version") = TUTTI_VERSION;
  bind_errors(m);
  bind_call(m);
  bind_array(m);
  bind_work(m);
  bind_group(m);
  bind_apply(m);
  bind_fused(m);
  bind_prepared(m);
  bind_tensor(m);
  bind_init(m);
  bind_parallel(m);
  bind_kernels(m);
  bind_store_bridge(m);
  bind_store_server(m);
  bind_completions(m);
  bind_logging(m);
#ifdef TUTTI_WITH_XLA
  bind_jax(m);
#endif
}
