// entry.hpp: how the torch backend in C++ calls the library that the module _native holds.
// SPDX-License-Identifier: Apache-2.0
//
// The backend is compiled against the torch that is installed, by whatever compiler is there, and must not hold a second copy of the
// library. So it calls through a table of functions with plain arguments, which _native hands over in a capsule. Nothing here depends
// on a standard library's types.
#pragma once

#include <Python.h>

#include <cstdint>

namespace tutti::torch_entry {

/// Contiguous elements. `dtype` and the verb and reduction below are the library's own numbers.
struct Array {
  void* data = nullptr;
  std::int64_t count = 0;
  std::uint8_t dtype = 0;
};

struct BlockingCall {
  std::uint8_t verb = 0, op = 0;
  std::int32_t root = 0;
  std::int64_t timeout_ns = 0;
  Array input{}, output{};
};

struct Entry {
  void* group = nullptr;
  // Both without the GIL; they give null, or a new reference to the exception that the call raises.
  /// Begins the call and waits for a moment; if it is not over by then, `pending` is what to complete. No other thread may begin a
  /// call of the group meanwhile.
  PyObject* (*run)(void* group, const BlockingCall& call, void*& pending) noexcept = nullptr;
  PyObject* (*complete)(void* pending) noexcept = nullptr;
};

inline constexpr const char* capsule_name = "tutti.torch_entry.1";  // the number counts changes of what is above

}  // namespace tutti::torch_entry
