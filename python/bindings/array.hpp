// array.hpp: Python objects with elements, as a View.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include <tutti/view.hpp>

#include "bindings/bind.hpp"

namespace tutti::python {

/// A view, and the Python object that keeps its memory alive.
struct Held {
  View view{};
  nb::object owner{};
};

/// tutti.Array: memory of any owner, with a shape. It supports DLPack and the buffer protocol.
struct Array {
  View view{};
  nb::object owner{};                   // Python's, or
  std::shared_ptr<std::byte> memory{};  // ours
  std::uint8_t kind = 0;  // of a result that another rank told of: whose array it had, see tutti/_kinds.py
  int source = -1;        // … of a message: who sent it
};

enum class Use { read, write };
/// Which memory a caller can work with: most reach that of the CPU only.
enum class Memory { cpu, any };

/// Looks at an object: a NumPy array, an Array, anything with DLPack or the buffer protocol, or None (a view of
/// nothing). Throws InvalidArgument that says what the object is and what would do.
Held hold(nb::handle object, Use use, Memory memory = Memory::cpu);

/// Through the table of C functions that its type carries (see exchange.hpp). False: it carries none. Throws for what cannot be seen so.
bool view_exchanged(nb::handle object, View& view);

/// Memory of our own for elements whose shape became known during a call.
Array new_array(DType dtype, std::span<const std::int64_t> shape);

/// Our memory as an array of that type. Null: only the type itself can make its arrays.
nb::object array_over(nb::handle type, Array array);

}  // namespace tutti::python
