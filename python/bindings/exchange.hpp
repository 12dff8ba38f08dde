// exchange.hpp: DLPack without Python between: a table of C functions that an array's type carries.
// SPDX-License-Identifier: Apache-2.0
//
// torch (2.10 and later) and others put it on their array types as `__dlpack_c_exchange_api__`. One call fills in where the
// elements lie, makes no object, and takes tensors that require gradients, which `__dlpack__` refuses.
#pragma once

#include <nanobind/ndarray.h>

#include <cstddef>
#include <memory>

#include "bindings/bind.hpp"

namespace tutti::python {

/// Looks at an array through its type's table; the shape and the strides stay the array's. False: the type has none. Throws
/// InvalidArgument for arrays that cannot be seen this way (sparse ones, for example), with what the framework says.
bool exchange(nb::handle object, nb::dlpack::dltensor& array);

/// An array of that type over elements described by `array`, whose shape and strides are copied; `memory` keeps them. Null: its table cannot
/// make any.
nb::object new_exchanged(nb::handle type, const nb::dlpack::dltensor& array, std::shared_ptr<std::byte> memory);

}  // namespace tutti::python
