// exchange.hpp: DLPack without Python between: a table of C functions that an array's type carries.
// SPDX-License-Identifier: Apache-2.0
//
// torch (2.10 and later) and others put it on their array types as `__dlpack_c_exchange_api__`. One call fills in where the
// elements lie, makes no object, and takes tensors that require gradients, which `__dlpack__` refuses.
#pragma once

#include <nanobind/ndarray.h>

#include "bindings/bind.hpp"

namespace tutti::python {

/// Looks at an array through its type's table; the shape and the strides stay the array's. False: the type has none. Throws
/// InvalidArgument for arrays that cannot be seen this way (sparse ones, for example), with what the framework says.
bool exchange(nb::handle object, nb::dlpack::dltensor& array);

}  // namespace tutti::python
