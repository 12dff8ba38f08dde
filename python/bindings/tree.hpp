// tree.hpp: lists, tuples and dicts of arrays, taken apart and put together without a Python frame between.
// SPDX-License-Identifier: Apache-2.0
//
// What is usual is served here: lists, tuples and dicts with texts for keys, and in them arrays of one framework. Everything else
// (dataclasses, named tuples, numbers, subclasses) is left to tutti/_tree.py. Both say a structure in the same words, so that it
// does not matter which of them served a rank.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bindings/array.hpp"
#include "parallel/fuse.hpp"

#include <tutti/request.hpp>

namespace tutti::python {

/// How a framework's arrays are read (torch's: in tensor.cpp), and where results go. Functions of Python; None: the usual way.
struct TreeServer {
  nb::object type;    // the results', where they are made over memory of ours
  nb::object allows;  // (leaves) -> whether they may be read and nobody records what is done with them
  nb::object views;   // (leaves) -> NumPy arrays over their memory
  nb::object finish;  // (results as NumPy arrays, leaves) -> results as the framework's arrays
  /// (call, leaves, messages, group, timeout) -> results: instead of all that. Of the arrays only `shape` and `dtype` are asked for.
  nb::object run;
  nb::object split;  // (array of one axis, lengths) -> arrays over its parts, quicker than each is made by itself
};

/// Arrays of exactly this type may be leaves. Types with the same server may be mixed.
void serve_trees(nb::handle type, std::shared_ptr<TreeServer> server);

nb::list listed(std::span<const nb::object> objects);

/// What follows from containers, keys, dtypes and shapes alone. Leaves are numbered as they lie in the containers.
struct Structure {
  struct Message {
    std::vector<int> leaves;
    std::int64_t bytes = 0;
  };
  Request asked;  // of a call on such a tree: its hash, and no arrays
  std::vector<Message> messages;
  bool is_floating = true;  // floating-point or complex, all of them
};

/// A tree taken apart.
struct Tree {
  std::vector<nb::object> leaves;
  std::vector<View> views;
  const TreeServer* server = nullptr;  // null: NumPy's arrays
  std::string shape;                   // containers, keys, dtypes and shapes as bytes
  nb::object owners = nb::none();      // of what the views look at, where it is not the leaves

  /// False: this is not served here, and nothing has happened.
  bool take(nb::handle x);
  /// Found once for trees of the same shape, for ranks that are near each other and for others.
  [[nodiscard]] std::shared_ptr<const Structure> structure(nb::handle x, const parallel::FuseLimits& limits) const;
  /// The containers of x again, with other leaves.
  [[nodiscard]] static nb::object rebuild(nb::handle x, std::span<const nb::object> leaves);

 private:
  bool take_containers(nb::handle x, int depth);
  bool take_leaf(nb::handle x);
  bool look();
  void append_shapes();
};

}  // namespace tutti::python
