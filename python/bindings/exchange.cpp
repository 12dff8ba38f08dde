// exchange.cpp: DLPack without Python between.
// SPDX-License-Identifier: Apache-2.0
#include "bindings/exchange.hpp"

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>

#include <tutti/error.hpp>
#include <tutti/view.hpp>

namespace tutti::python {
namespace {

constexpr std::uint32_t known_major = 1;
constexpr std::size_t types_max = 256;  // programs that make types as they go are served, only more slowly

using DescribeArray = int (*)(void* object, nb::dlpack::dltensor* array);

/// DLManagedTensorVersioned of DLPack 1.
struct Managed {
  std::uint32_t major, minor;
  void* context;
  void (*free)(Managed*);
  std::uint64_t flags;
  nb::dlpack::dltensor array;
};
using MakeArray = int (*)(Managed* memory, void** object);

/// What is behind an array that was made from memory of ours.
struct Exported {
  Managed managed{};
  std::shared_ptr<std::byte> memory;
  std::array<std::int64_t, View::max_axes> shape, strides;
};

/// DLPackExchangeAPI of DLPack 1.3. Only the first two lines are the same in every version.
struct Table {
  std::uint32_t major, minor;
  const Table* older;
  void *allocate, *to_managed;
  MakeArray make;
  DescribeArray describe;  // may be null
  void* current_stream;
};

const Table* look_up(nb::handle type) {
  PyObject* const found = PyObject_GetAttrString(type.ptr(), "__dlpack_c_exchange_api__");
  if (found == nullptr) {
    PyErr_Clear();
    return nullptr;
  }
  const nb::object capsule = nb::steal(found);
  if (!PyCapsule_IsValid(capsule.ptr(), "dlpack_exchange_api")) return nullptr;
  const auto* table = static_cast<const Table*>(PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
  while (table != nullptr && table->major != known_major) table = table->older;
  return table;
}

const Table* table_of(nb::handle type) {  // under the GIL
  static auto* const known = new std::unordered_map<PyObject*, const Table*>;
  if (const auto found = known->find(type.ptr()); found != known->end()) return found->second;
  const Table* const table = look_up(type);
  if (known->size() < types_max)
    known->emplace(type.inc_ref().ptr(), table);  // kept, so that the address stays its own
  return table;
}

/// What the framework raised, in one line, as an error of ours, so that a rank that rejects a call's arguments can tell
/// the others.
InvalidArgument refusal(nb::handle object) {
  const nb::python_error raised;
  const auto text = nb::cast<std::string>(nb::str(raised.value()));
  return InvalidArgument(fmt::format("a {} cannot be seen as one array in memory: {}",
                                     nb::cast<std::string>(object.type().attr("__name__")),
                                     text.substr(0, text.find('\n'))));
}

}  // namespace

bool exchange(nb::handle object, nb::dlpack::dltensor& array) {
  const Table* const table = table_of(object.type());
  if (table == nullptr || table->describe == nullptr) return false;
  if (table->describe(object.ptr(), &array) != 0) throw refusal(object);
  return true;
}

nb::object new_exchanged(nb::handle type, const nb::dlpack::dltensor& array, std::shared_ptr<std::byte> memory) {
  const Table* const table = table_of(type);
  if (table == nullptr || table->make == nullptr) return {};
  std::unique_ptr<Exported> exported(new Exported);
  exported->memory = std::move(memory);
  std::copy_n(array.shape, array.ndim, exported->shape.begin());
  std::copy_n(array.strides, array.ndim, exported->strides.begin());
  Managed& managed = exported->managed;
  managed = {.major = known_major,
             .minor = 0,
             .context = exported.get(),
             .free = [](Managed* self) { delete static_cast<Exported*>(self->context); },
             .flags = 0,
             .array = array};
  managed.array.shape = exported->shape.data();
  managed.array.strides = exported->strides.data();
  void* made = nullptr;
  if (table->make(&managed, &made) != 0) throw nb::python_error();  // and nothing has been taken over
  (void)exported.release();
  return nb::steal(static_cast<PyObject*>(made));
}

}  // namespace tutti::python
