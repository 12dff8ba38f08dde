// numpy.hpp: NumPy arrays, without a Python frame between. NumPy is imported when the first of its arrays is seen.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>

#include "bindings/array.hpp"

namespace tutti::python {

/// Exactly numpy.ndarray; subclasses have rules of their own.
bool is_numpy(nb::handle object);
/// numpy.ndarray or a subclass.
bool is_numpy_kind(nb::handle object);
/// Throws InvalidArgument for what cannot be moved: objects, strings, dates, foreign byte order.
View view_of_numpy(nb::handle array);
/// What a numpy.dtype stands for; throws likewise.
DType dtype_of_numpy(nb::handle dtype);
/// An array like `like` (a NumPy array) in dtype, of that shape, elements not initialised.
nb::object new_numpy_like(nb::handle like, std::span<const std::int64_t> shape);
/// Where the elements of a NumPy array begin.
void* numpy_data(nb::handle array);
/// An array like `like` in dtype, of that shape, over contiguous memory that `owner` keeps.
nb::object new_numpy_over(nb::handle like, std::span<const std::int64_t> shape, void* data, nb::handle owner);
/// An array over memory that `owner` keeps.
nb::object numpy_over(const View& view, nb::handle owner);

}  // namespace tutti::python
