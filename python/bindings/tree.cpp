// tree.cpp: lists, tuples and dicts of arrays, taken apart and put together without a Python frame between.
// SPDX-License-Identifier: Apache-2.0
#include "bindings/tree.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include <tutti/error.hpp>

#include "bindings/numpy.hpp"
#include "bindings/tensor.hpp"

namespace tutti::python {
namespace {

constexpr int depth_max = 64;                 // deeper ones are refused by _arrays/tree.py, in words
constexpr std::size_t structures_max = 1024;  // a program that makes them as it goes pays for each anew

constexpr const char* changed_meanwhile =
    "the tree was changed by another thread while a call on it was under way; give each thread its own";

auto& servers() {  // under the GIL
  static auto* const all = new std::unordered_map<PyObject*, std::shared_ptr<TreeServer>>;
  return *all;
}

/// Numbers and texts end to end; what comes next always follows from what came before.
void append(std::string& to, std::int64_t number) { to.append(reinterpret_cast<const char*>(&number), sizeof number); }

bool is_text(PyObject* key) { return PyUnicode_CheckExact(key) != 0; }

int leaves_in(nb::handle x) {
  PyObject* const o = x.ptr();
  if (o == Py_None) return 0;
  int count = 0;
  if (PyList_CheckExact(o) || PyTuple_CheckExact(o)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) count += leaves_in(PySequence_Fast_GET_ITEM(o, i));
    return count;
  }
  if (!PyDict_CheckExact(o)) return 1;
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(o, &at, &key, &value);) count += leaves_in(value);
  return count;
}

/// As Python writes a dtype's name and a tuple.
std::string words_for(const View& view) {
  return fmt::format("{}({}{})", name_of(view.dtype()), fmt::join(view.shape(), ", "), view.axes() == 1 ? "," : "");
}

/// The structure as _arrays/tree.py says it: dicts in the order of their sorted keys, and the leaves in that order.
struct Saying {
  std::span<const View> views;
  std::string words;
  std::vector<int> order;

  void say(std::string_view word) {
    if (!words.empty()) words += ' ';
    words += word;
  }

  void tell(nb::handle x, int first) {
    PyObject* const o = x.ptr();
    if (o == Py_None) return say("-");
    if (PyDict_CheckExact(o)) return tell_dict(o, first);
    if (!PyList_CheckExact(o) && !PyTuple_CheckExact(o)) {
      order.push_back(first);
      return say(words_for(views[std::size_t(first)]));
    }
    say("(");
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) {
      const nb::handle part = PySequence_Fast_GET_ITEM(o, i);
      say(fmt::format("[{}]", i));
      tell(part, first);
      first += leaves_in(part);
    }
    say(")");
  }

  void tell_dict(PyObject* o, int first) {
    struct Part {
      PyObject *key, *value;
      int first;
    };
    std::vector<Part> parts;
    Part part{nullptr, nullptr, first};
    for (Py_ssize_t at = 0; PyDict_Next(o, &at, &part.key, &part.value);) {
      parts.push_back(part);
      part.first += leaves_in(part.value);
    }
    std::ranges::sort(parts, [](const Part& a, const Part& b) { return PyUnicode_Compare(a.key, b.key) < 0; });
    say("{");
    for (const Part& each : parts) {
      say(fmt::format("[{}]", nb::cast<std::string>(nb::repr(each.key))));
      tell(each.value, each.first);
    }
    say("}");
  }
};

Structure new_structure(nb::handle x, std::span<const View> views, const parallel::FuseLimits& limits) {
  Saying saying{.views = views};
  saying.tell(x, 0);
  Structure structure;
  structure.asked.structure =
      nb::cast<std::uint64_t>(nb::module_::import_("tutti._arrays.tree").attr("hash_of")(saying.words));
  std::vector<BucketItem> items;
  for (const int leaf : saying.order) {
    const View& view = views[std::size_t(leaf)];
    items.push_back({view.bytes(), view.dtype()});
    structure.is_floating = structure.is_floating && (is_floating(view.dtype()) || is_complex(view.dtype()));
  }
  for (const auto& places : parallel::plan_fused(items, limits)) {
    Structure::Message& message = structure.messages.emplace_back();
    for (const int place : places) {
      message.leaves.push_back(saying.order[std::size_t(place)]);
      message.bytes += items[std::size_t(place)].bytes;
    }
  }
  return structure;
}

/// Dtype and shape of an array that says them as NumPy does; its elements are not looked at.
View described(nb::handle x) {
  static PyObject *const shape_name = PyUnicode_InternFromString("shape"), *const dtype_name =
                                                                               PyUnicode_InternFromString("dtype");
  const nb::object shape = nb::steal(PyObject_GetAttr(x.ptr(), shape_name)),
                   dtype = nb::steal(PyObject_GetAttr(x.ptr(), dtype_name));
  if (!shape.is_valid() || !dtype.is_valid()) throw nb::python_error();
  std::array<std::int64_t, View::max_axes> lengths;
  const std::size_t axes = nb::len(shape);
  if (axes > lengths.size()) throw InvalidArgument("the array has more than 16 axes; reshape it");
  for (std::size_t i = 0; i < axes; ++i) lengths[i] = nb::cast<std::int64_t>(shape[i]);
  static constexpr double nowhere{};  // only the shape is looked at
  return View::read_only(&nowhere, dtype_of_numpy(dtype), std::span(lengths.data(), axes));
}

nb::object rebuilt(nb::handle x, std::span<const nb::object>& leaves) {
  PyObject* const o = x.ptr();
  if (o == Py_None) return nb::none();
  if (PyDict_CheckExact(o)) {
    nb::dict made;
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(o, &at, &key, &value);) made[nb::handle(key)] = rebuilt(value, leaves);
    return made;
  }
  if (PyList_CheckExact(o) || PyTuple_CheckExact(o)) {
    const Py_ssize_t length = PySequence_Fast_GET_SIZE(o);
    nb::object made = nb::steal(PyList_CheckExact(o) ? PyList_New(length) : PyTuple_New(length));
    if (!made.is_valid()) throw nb::python_error();
    for (Py_ssize_t i = 0; i < length; ++i) {
      if (i >= PySequence_Fast_GET_SIZE(o)) throw InvalidArgument(changed_meanwhile);
      PyObject* const part = rebuilt(PySequence_Fast_GET_ITEM(o, i), leaves).release().ptr();
      if (PyList_CheckExact(o)) PyList_SET_ITEM(made.ptr(), i, part);
      else PyTuple_SET_ITEM(made.ptr(), i, part);
    }
    return made;
  }
  if (leaves.empty()) throw InvalidArgument(changed_meanwhile);
  nb::object leaf = leaves.front();
  leaves = leaves.subspan(1);
  return leaf;
}

}  // namespace

nb::list listed(std::span<const nb::object> objects) {
  nb::list list;
  for (const nb::object& object : objects) list.append(object);
  return list;
}

void serve_trees(nb::handle type, std::shared_ptr<TreeServer> server) {
  servers()[type.inc_ref().ptr()] = std::move(server);  // kept, so that the address stays its own
}

bool Tree::take_leaf(nb::handle x) {
  const TreeServer* found = nullptr;
  if (!is_numpy(x)) {
    const auto known = servers().find(x.type().ptr());
    if (known == servers().end()) return false;
    found = known->second.get();
  }
  if (!leaves.empty() && found != server) return false;
  server = found;
  leaves.push_back(nb::borrow(x));
  shape += 'x';
  return true;
}

bool Tree::take_containers(nb::handle x, int depth) {
  PyObject* const o = x.ptr();
  if (o == Py_None) {
    shape += '-';
    return true;
  }
  const bool is_dict = PyDict_CheckExact(o) != 0, is_list = PyList_CheckExact(o) != 0;
  if (!is_dict && !is_list && !PyTuple_CheckExact(o)) return take_leaf(x);
  if (depth == depth_max) return false;
  shape += is_dict ? '{' : '(';
  if (!is_dict) {
    append(shape, PySequence_Fast_GET_SIZE(o));
    if (depth == 0) leaves.reserve(std::size_t(PySequence_Fast_GET_SIZE(o)));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) {
      if (!take_containers(PySequence_Fast_GET_ITEM(o, i), depth + 1)) return false;
    }
    return true;
  }
  append(shape, PyDict_GET_SIZE(o));
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(o, &at, &key, &value);) {
    Py_ssize_t length = 0;
    const char* const text = is_text(key) ? PyUnicode_AsUTF8AndSize(key, &length) : nullptr;
    if (text == nullptr) {
      PyErr_Clear();
      return false;
    }
    append(shape, length);
    shape.append(text, std::size_t(length));
    if (!take_containers(value, depth + 1)) return false;
  }
  return true;
}

/// Where the leaves' elements lie.
bool Tree::look() {
  views.reserve(leaves.size());
  if (server != nullptr && is_tensor_type(server->type)) return views_of_tensors(leaves, views);
  const bool is_described = server != nullptr && !server->run.is_none();
  if (server != nullptr && !server->allows.is_none() && !nb::cast<bool>(server->allows(listed(leaves)))) return false;
  if (server != nullptr && !server->views.is_none()) owners = server->views(listed(leaves));
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const nb::object looked_at = owners.is_none() ? leaves[i] : nb::object(owners[i]);
    views.push_back(is_described          ? described(looked_at)
                    : is_numpy(looked_at) ? view_of_numpy(looked_at)
                                          : hold(looked_at, Use::read).view);
  }
  return true;
}

void Tree::append_shapes() {
  for (const View& view : views) {
    shape += char(view.dtype());
    shape += char(view.axes());
    for (const std::int64_t length : view.shape()) append(shape, length);
  }
}

bool Tree::take(nb::handle x) {
  constexpr std::size_t small_shape_bytes = 256;  // of most trees; longer ones grow
  shape.reserve(small_shape_bytes);
  try {
    if (!take_containers(x, 0) || leaves.empty() || !look()) return false;
    append_shapes();
    return true;
  } catch (const Error&) {
    return false;  // _arrays/fuse.py finds it, too, and says where in the tree it is
  }
}

std::shared_ptr<const Structure> Tree::structure(nb::handle x, const parallel::FuseLimits& limits) const {
  using Known = std::unordered_map<std::string, std::shared_ptr<const Structure>>;
  static auto* const known = new std::unordered_map<std::int64_t, Known>;  // by the limits; under the GIL
  Known& alike = (*known)[limits.array_bytes];
  static Known::value_type* latest = nullptr;
  static const Known* latest_of = nullptr;
  if (latest_of == &alike && latest->first == shape) return latest->second;
  auto found = alike.find(shape);
  if (found == alike.end()) {
    auto made = std::make_shared<const Structure>(new_structure(x, views, limits));
    if (alike.size() >= structures_max) alike.clear();
    found = alike.insert_or_assign(shape, std::move(made)).first;
  }
  latest = &*found;
  latest_of = &alike;
  return latest->second;
}

nb::object Tree::rebuild(nb::handle x, std::span<const nb::object> leaves) {
  nb::object made = rebuilt(x, leaves);
  if (!leaves.empty()) throw InvalidArgument(changed_meanwhile);
  return made;
}

}  // namespace tutti::python
