// errors.hpp: the library's errors as exceptions of Python.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>

namespace tutti::python {

/// Sets the exception of tutti/_errors.py that stands for this tutti::Error. With the GIL.
void set_python_error(const std::exception_ptr& thrown);

}  // namespace tutti::python
