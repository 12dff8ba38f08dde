// fused.cpp: one verb on a tree of arrays, in few messages: packed, sent and unpacked in one step.
// SPDX-License-Identifier: Apache-2.0
#include "bindings/fused.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include <tutti/error.hpp>

#include "bindings/bind.hpp"
#include "bindings/numpy.hpp"
#include "bindings/tree.hpp"
#include "kernel/kernel.hpp"
#include "parallel/fuse.hpp"

namespace tutti::python {
namespace {

/// Verbs that treat each element by itself.
bool is_fusible(const Call& call) { return keeps_shape(call.verb); }

/// Between local peers a call takes less than a microsecond, and a copy of many bytes more. A fact about the group, so
/// the same on every rank.
parallel::FuseLimits limits_for(Member& member) {
  const bool is_near = member.group().backend() == "shm" || member.size() == 1;
  return is_near ? parallel::FuseLimits::among_local_peers() : parallel::FuseLimits();
}

/// Memory for packed arrays. One buffer is kept from call to call; a call that finds it in use allocates another.
class Packed {
 public:
  explicit Packed(std::int64_t bytes) : owner_(std::exchange(kept(), nb::object())) {
    if (owner_.is_valid() && array().view.bytes() >= bytes) return;
    const auto room = std::int64_t(std::bit_ceil(std::uint64_t(std::max<std::int64_t>(bytes, 4096))));
    owner_ = nb::cast(new_array(DType::uint8, std::span(&room, 1)));
  }
  /// The call is over, and the memory free again. After a failure it may still be in use, and is freed with its last
  /// user.
  void give_back() { kept() = std::move(owner_); }

  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(array().view.data()); }

 private:
  static nb::object& kept() {  // under the GIL
    static auto* const memory = new nb::object;
    return *memory;
  }
  [[nodiscard]] const Array& array() const { return nb::cast<const Array&>(owner_); }

  nb::object owner_;
};

std::byte* pack(const View& from, std::byte* to) {
  if (from.is_contiguous()) std::memcpy(to, from.data(), std::size_t(from.bytes()));
  else kernel::pack(from, to);
  return to + from.bytes();
}

const std::byte* unpack(const std::byte* from, const View& to) {
  if (to.is_contiguous()) std::memcpy(to.data(), from, std::size_t(to.bytes()));
  else kernel::unpack(from, to);
  return from + to.bytes();
}

/// The arrays for the results, and where their elements lie.
struct Results {
  std::vector<nb::object> arrays;
  std::vector<View> views;         // none of arrays in a block; empty where all of them are in one
  std::vector<std::byte*> blocks;  // by message: where its results lie end to end; null: they lie apart

  explicit Results(const Tree& tree) : arrays(tree.leaves.size()) {}
};

/// A result with memory of its own. Null: only the framework can make it.
nb::object new_result(const Tree& tree, std::size_t leaf, View& view) {
  const View& like = tree.views[leaf];
  if (tree.server == nullptr) {
    nb::object array = new_numpy_like(tree.leaves[leaf], like.shape());
    view = view_of_numpy(array);
    return array;
  }
  Array memory = new_array(like.dtype(), like.shape());  // begins at a multiple of 64: frameworks can take it over
  view = memory.view;
  return tree.server->type.is_none() ? numpy_over(view, nb::cast(std::move(memory)))
                                     : array_over(tree.server->type, std::move(memory));
}

/// A split costs a call more, and each of its parts less, than arrays that are made one by one; measured with torch.
constexpr std::size_t split_from_parts = 16;

bool is_list_of_vectors(const Tree& tree, const Structure::Message& message) {
  return std::ranges::all_of(message.leaves, [&](int leaf) { return tree.views[std::size_t(leaf)].axes() == 1; });
}

nb::list lengths_of(const Tree& tree, const Structure::Message& message) {
  nb::list lengths = nb::steal<nb::list>(PyList_New(Py_ssize_t(message.leaves.size())));
  for (std::size_t i = 0; i < message.leaves.size(); ++i) {
    const std::int64_t length = tree.views[std::size_t(message.leaves[i])].shape().front();
    PyList_SET_ITEM(lengths.ptr(), Py_ssize_t(i), PyLong_FromLongLong(length));
  }
  return lengths;
}

/// Results that lie end to end in one piece of memory, as they arrive: nothing is unpacked. Each of them keeps the piece.
void make_numpy_block(const Tree& tree, const Structure::Message& message, Results& results) {
  const nb::object& first = tree.leaves[std::size_t(message.leaves.front())];
  const std::int64_t count =
      message.bytes / std::int64_t(size_of(tree.views[std::size_t(message.leaves.front())].dtype()));
  const nb::object block = new_numpy_like(first, std::span(&count, 1));
  auto* at = static_cast<std::byte*>(numpy_data(block));
  results.blocks.push_back(at);
  for (const int leaf : message.leaves) {
    const View& like = tree.views[std::size_t(leaf)];
    results.arrays[std::size_t(leaf)] = new_numpy_over(tree.leaves[std::size_t(leaf)], like.shape(), at, block);
    at += like.bytes();
  }
}

/// The same for arrays of a framework. False: only the framework can make them.
bool make_block(const Tree& tree, const Structure::Message& message, Results& results) {
  const DType dtype = tree.views[std::size_t(message.leaves.front())].dtype();
  const std::int64_t count = message.bytes / std::int64_t(size_of(dtype));
  const Array block = new_array(dtype, std::span(&count, 1));
  auto* at = static_cast<std::byte*>(block.view.data());
  results.blocks.push_back(at);
  const bool is_split = !tree.server->split.is_none() && message.leaves.size() >= split_from_parts;
  if (is_split && is_list_of_vectors(tree, message)) {
    const nb::object whole = array_over(tree.server->type, block);
    if (!whole.is_valid()) return false;
    const nb::object parts = tree.server->split(whole, lengths_of(tree, message));
    for (std::size_t i = 0; i < message.leaves.size(); ++i) results.arrays[std::size_t(message.leaves[i])] = parts[i];
    return true;
  }
  for (const int leaf : message.leaves) {
    const View view(at, dtype, tree.views[std::size_t(leaf)].shape());
    nb::object array = array_over(tree.server->type, {.view = view, .memory = block.memory});
    if (!array.is_valid()) return false;
    results.arrays[std::size_t(leaf)] = std::move(array);
    at += view.bytes();
  }
  return true;
}

bool make_results(const Tree& tree, const Structure& structure, Results& results) {
  // TensorFlow takes memory over only where it begins at a multiple of 64.
  const bool in_blocks = tree.server == nullptr || !tree.server->type.is_none();
  for (const Structure::Message& message : structure.messages) {
    if (in_blocks && message.leaves.size() > 1) {
      if (tree.server == nullptr) make_numpy_block(tree, message, results);
      else if (!make_block(tree, message, results)) return false;
      continue;
    }
    results.blocks.push_back(nullptr);
    results.views.resize(tree.leaves.size());
    for (const int each : message.leaves) {
      const auto leaf = std::size_t(each);
      results.arrays[leaf] = new_result(tree, leaf, results.views[leaf]);
      if (!results.arrays[leaf].is_valid()) return false;
    }
  }
  return true;
}

/// NumPy arrays of the caller, built as the input is. What does not fit is refused by _arrays/fuse.py, in words.
bool take_results(const Tree& tree, nb::handle out, const Structure& structure, Results& results) {
  Tree given;
  if (tree.server != nullptr || !given.take(out) || given.server != nullptr || given.shape != tree.shape) return false;
  const auto is_writable = [](const View& view) {
    return !view.is_read_only() && std::ranges::find(view.strides(), 0) == view.strides().end();
  };
  if (!std::ranges::all_of(given.views, is_writable)) return false;
  results.arrays = std::move(given.leaves);
  results.views = std::move(given.views);
  results.blocks.assign(structure.messages.size(), nullptr);
  return true;
}

/// One tree on its way.
struct FusedCall {
  const std::shared_ptr<Member>& member;
  const Call& call;
  Duration timeout;
  const Tree& tree;
  const Structure& structure;
  const Results& results;

  /// Off its root, what a broadcast is given is not read.
  [[nodiscard]] bool reads() const { return call.verb != Verb::broadcast || member->rank() == call.root; }

  void run_alone(std::size_t leaf) const {
    const Terms terms{.input = reads() ? tree.views[leaf] : View(),
                      .output = results.views[leaf],
                      .timeout = timeout,
                      .rest = &structure.asked};
    run_call(member, call, terms);
  }

  /// `block`: where the results lie end to end; null: they lie apart.
  void run_together(const Structure::Message& message, std::byte* block) const {
    const bool in_place = call.verb == Verb::all_reduce;
    Packed memory(block == nullptr && !in_place ? 2 * message.bytes : message.bytes);
    std::byte* const output = block != nullptr ? block : in_place ? memory.data() : memory.data() + message.bytes;
    std::byte* const input = in_place ? output : memory.data();
    const DType dtype = tree.views[std::size_t(message.leaves.front())].dtype();
    const std::int64_t count = message.bytes / std::int64_t(size_of(dtype));
    if (reads()) {
      std::byte* to = input;
      for (const int leaf : message.leaves) to = pack(tree.views[std::size_t(leaf)], to);
    }
    const Terms terms{.input = reads() ? View(input, dtype, std::span(&count, 1)) : View(),
                      .output = View(output, dtype, std::span(&count, 1)),
                      .timeout = timeout,
                      .rest = &structure.asked};
    run_call(member, call, terms);
    const std::byte* from = output;
    if (block == nullptr) {
      for (const int leaf : message.leaves) from = unpack(from, results.views[std::size_t(leaf)]);
    }
    memory.give_back();
  }
};

/// Where the framework's own compiler packs and unpacks.
nb::object run_by_server(const Tree& tree, nb::handle x, const Structure& structure, const Call& call,
                         const std::shared_ptr<Member>& member, Duration timeout) {
  nb::list messages;
  for (const Structure::Message& message : structure.messages) messages.append(nb::tuple(nb::cast(message.leaves)));
  const nb::object seconds =
      timeout == Duration{} ? nb::none() : nb::object(nb::float_(std::chrono::duration<double>(timeout).count()));
  const nb::object made = tree.server->run(call, listed(tree.leaves), nb::tuple(messages), member, seconds);
  std::vector<nb::object> results(tree.leaves.size());
  for (std::size_t i = 0; i < results.size(); ++i) results[i] = made[i];
  return Tree::rebuild(x, results);
}

}  // namespace

nb::object apply_fused(const std::shared_ptr<Member>& member, const Call& call, nb::handle x, nb::handle out,
                       Duration timeout, Elements elements) {
  Tree tree;
  if (!is_fusible(call) || !tree.take(x)) return {};
  const auto structure = tree.structure(x, limits_for(*member));
  if (elements == Elements::floating && !structure->is_floating) return {};
  Results results(tree);
  if (!out.is_none() && !take_results(tree, out, *structure, results)) return {};
  if (tree.server != nullptr && !tree.server->run.is_none()) {
    if (!out.is_none()) return {};
    Call structured = call;
    structured.structure = structure->asked.structure;
    return run_by_server(tree, x, *structure, structured, member, timeout);
  }
  const auto make = [&] { return make_results(tree, *structure, results); };
  if (out.is_none() && !prepared(member, call, make)) return {};
  const FusedCall fused{
      .member = member, .call = call, .timeout = timeout, .tree = tree, .structure = *structure, .results = results};
  for (std::size_t i = 0; i < structure->messages.size(); ++i) {
    const Structure::Message& message = structure->messages[i];
    if (message.leaves.size() == 1) fused.run_alone(std::size_t(message.leaves.front()));
    else fused.run_together(message, results.blocks[i]);
  }
  if (tree.server == nullptr || tree.server->finish.is_none()) return Tree::rebuild(x, results.arrays);
  const nb::object finished = tree.server->finish(listed(results.arrays), listed(tree.leaves));
  for (std::size_t i = 0; i < results.arrays.size(); ++i) results.arrays[i] = finished[i];
  return Tree::rebuild(x, results.arrays);
}

void bind_fused(nb::module_& m) {
  m.def(
      "serve_trees",
      [](const std::vector<nb::handle>& types, nb::object makes, nb::object allows, nb::object views, nb::object finish,
         nb::object run, nb::object split) {
        const auto server = std::make_shared<TreeServer>(
            TreeServer{.type = makes, .allows = allows, .views = views, .finish = finish, .run = run, .split = split});
        for (const nb::handle type : types) serve_trees(type, server);
      },
      nb::arg("types"), nb::kw_only(), nb::arg("makes").none() = nb::none(), nb::arg("allows").none() = nb::none(),
      nb::arg("views").none() = nb::none(), nb::arg("finish").none() = nb::none(), nb::arg("run").none() = nb::none(),
      nb::arg("split").none() = nb::none(),
      "Trees of arrays of exactly these types are packed, sent and unpacked in one step.");
  m.def(
      "plan_fused",
      [](const std::vector<std::pair<std::int64_t, std::string>>& items, const std::shared_ptr<Member>& group) {
        std::vector<BucketItem> known;
        for (const auto& [count, name] : items) {
          const DType dtype = dtype_from_name(name);
          known.push_back({count * std::int64_t(size_of(dtype)), dtype});
        }
        return parallel::plan_fused(known, group ? limits_for(*group) : parallel::FuseLimits());
      },
      nb::arg("items"), nb::arg("group").none() = nb::none(),
      "Which arrays, given by (elements, dtype), travel together, by their places.");
}

}  // namespace tutti::python
