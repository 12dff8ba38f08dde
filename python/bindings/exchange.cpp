// exchange.cpp: DLPack without Python between.
// SPDX-License-Identifier: Apache-2.0
#include "bindings/exchange.hpp"

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <string>
#include <unordered_map>

#include <tutti/error.hpp>

namespace tutti::python {
namespace {

constexpr std::uint32_t known_major = 1;
constexpr std::size_t types_max = 256;  // programs that make types as they go are served, only more slowly

using DescribeArray = int (*)(void* object, nb::dlpack::dltensor* array);

/// DLPackExchangeAPI of DLPack 1.3. Only the first two lines are the same in every version.
struct Table {
  std::uint32_t major, minor;
  const Table* older;
  void *allocate, *to_managed, *from_managed;
  DescribeArray describe;  // may be null
  void* current_stream;
};

DescribeArray look_up(nb::handle type) {
  PyObject* const found = PyObject_GetAttrString(type.ptr(), "__dlpack_c_exchange_api__");
  if (found == nullptr) {
    PyErr_Clear();
    return nullptr;
  }
  const nb::object capsule = nb::steal(found);
  if (!PyCapsule_IsValid(capsule.ptr(), "dlpack_exchange_api")) return nullptr;
  const auto* table = static_cast<const Table*>(PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
  while (table != nullptr && table->major != known_major) table = table->older;
  return table != nullptr ? table->describe : nullptr;
}

DescribeArray describe_of(nb::handle type) {  // under the GIL
  static auto* const known = new std::unordered_map<PyObject*, DescribeArray>;
  if (const auto found = known->find(type.ptr()); found != known->end()) return found->second;
  const DescribeArray describe = look_up(type);
  if (known->size() < types_max)
    known->emplace(type.inc_ref().ptr(), describe);  // kept, so that the address stays its own
  return describe;
}

/// What the framework raised, in one line, as an error of ours: so that whoever refuses a call's arguments tells the others.
InvalidArgument refusal(nb::handle object) {
  const nb::python_error raised;
  const auto text = nb::cast<std::string>(nb::str(raised.value()));
  return InvalidArgument(fmt::format("a {} cannot be seen as one array in memory: {}",
                                     nb::cast<std::string>(object.type().attr("__name__")),
                                     text.substr(0, text.find('\n'))));
}

}  // namespace

bool exchange(nb::handle object, nb::dlpack::dltensor& array) {
  const DescribeArray describe = describe_of(object.type());
  if (describe == nullptr) return false;
  if (describe(object.ptr(), &array) != 0) throw refusal(object);
  return true;
}

}  // namespace tutti::python
