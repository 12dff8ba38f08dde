// bind.hpp: the parts of the module, one per file.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

namespace tutti::python {

namespace nb = nanobind;

void bind_errors(nb::module_& m);
void bind_call(nb::module_& m);
void bind_array(nb::module_& m);
void bind_work(nb::module_& m);
void bind_gpu(nb::module_& m);
void bind_group(nb::module_& m);
void bind_apply(nb::module_& m);
void bind_found_message(nb::module_& m);
void bind_fused(nb::module_& m);
void bind_prepared(nb::module_& m);
void bind_init(nb::module_& m);
void bind_parallel(nb::module_& m);
void bind_kernels(nb::module_& m);
void bind_tensor(nb::module_& m);
void bind_torch_entry(nb::module_& m);
void bind_store_bridge(nb::module_& m);
void bind_completions(nb::module_& m);
void bind_logging(nb::module_& m);
#ifdef TUTTI_WITH_XLA
void bind_jax(nb::module_& m);
#endif

}  // namespace tutti::python
