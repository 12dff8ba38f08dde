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

/// Between neighbours a call takes less than a microsecond, and a copy of many bytes more. A fact about the group, so the same on
/// every rank.
parallel::FuseLimits limits_for(Member& member) {
  const bool is_near = member.group().backend() == "shm" || member.size() == 1;
  return is_near ? parallel::FuseLimits::among_local_peers() : parallel::FuseLimits();
}

/// Memory for packed arrays. One piece is kept from call to call; whoever finds it taken makes another.
class Packed {
 public:
  explicit Packed(std::int64_t bytes) : owner_(std::exchange(kept(), nb::object())) {
    if (owner_.is_valid() && array().view.bytes() >= bytes) return;
    const auto room = std::int64_t(std::bit_ceil(std::uint64_t(std::max<std::int64_t>(bytes, 4096))));
    owner_ = nb::cast(new_array(DType::uint8, std::span(&room, 1)));
  }
  /// The call is over, and the memory free again. After a failure it may still be in use, and goes with whoever uses it.
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
  std::vector<View> views;

  void add(nb::object array, const View& view) {
    views.push_back(view);
    arrays.push_back(std::move(array));
  }
};

bool make_results(const Tree& tree, Results& results) {
  results.arrays.reserve(tree.leaves.size());
  results.views.reserve(tree.leaves.size());
  for (std::size_t i = 0; i < tree.leaves.size(); ++i) {
    const View& like = tree.views[i];
    if (tree.server == nullptr) {
      nb::object array = new_numpy_like(tree.leaves[i], like.shape());
      const View view = view_of_numpy(array);
      results.add(std::move(array), view);
      continue;
    }
    Array memory = new_array(like.dtype(), like.shape());  // begins at a multiple of 64: frameworks can take it over
    const View view = memory.view;
    nb::object array = tree.server->type.is_none() ? numpy_over(view, nb::cast(std::move(memory)))
                                                   : array_over(tree.server->type, std::move(memory));
    if (!array.is_valid()) return false;
    results.add(std::move(array), view);
  }
  return true;
}

/// NumPy arrays of the caller, built as the input is. What does not fit is refused by _fuse.py, in words.
bool take_results(const Tree& tree, nb::handle out, Results& results) {
  Tree given;
  if (tree.server != nullptr || !given.take(out) || given.server != nullptr || given.shape != tree.shape) return false;
  const auto is_writable = [](const View& view) {
    return !view.is_read_only() && std::ranges::find(view.strides(), 0) == view.strides().end();
  };
  if (!std::ranges::all_of(given.views, is_writable)) return false;
  results = {.arrays = std::move(given.leaves), .views = std::move(given.views)};
  return true;
}

/// One tree on its way.
struct FusedCall {
  const std::shared_ptr<Member>& member;
  Call call;
  Duration timeout;
  const Tree& tree;
  const Results& results;

  /// Off its root, what a broadcast is given is not read.
  [[nodiscard]] bool reads() const { return call.verb != Verb::broadcast || member->rank() == call.root; }

  void run_alone(std::size_t leaf) const {
    const Terms terms{.input = reads() ? tree.views[leaf] : View(), .output = results.views[leaf], .timeout = timeout};
    run_call(member, call, terms);
  }

  void run_together(const Structure::Message& message) const {
    const bool in_place = call.verb == Verb::all_reduce;
    Packed memory(in_place ? message.bytes : 2 * message.bytes);
    std::byte* const input = memory.data();
    std::byte* const output = in_place ? input : input + message.bytes;
    const DType dtype = tree.views[std::size_t(message.leaves.front())].dtype();
    const std::int64_t count = message.bytes / std::int64_t(size_of(dtype));
    if (reads()) {
      std::byte* to = input;
      for (const int leaf : message.leaves) to = pack(tree.views[std::size_t(leaf)], to);
    }
    const Terms terms{.input = reads() ? View(input, dtype, std::span(&count, 1)) : View(),
                      .output = View(output, dtype, std::span(&count, 1)),
                      .timeout = timeout};
    run_call(member, call, terms);
    const std::byte* from = output;
    for (const int leaf : message.leaves) from = unpack(from, results.views[std::size_t(leaf)]);
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
  Results results;
  if (!is_fusible(call) || !tree.take(x)) return {};
  if (!out.is_none() && !take_results(tree, out, results)) return {};
  const auto structure = tree.structure(x, limits_for(*member));
  if (elements == Elements::floating && !structure->is_floating) return {};
  Call structured = call;
  structured.structure = structure->hash;
  if (tree.server != nullptr && !tree.server->run.is_none()) {
    if (!out.is_none()) return {};
    return run_by_server(tree, x, *structure, structured, member, timeout);
  }
  if (out.is_none() && !make_results(tree, results)) return {};
  const FusedCall fused{.member = member, .call = structured, .timeout = timeout, .tree = tree, .results = results};
  for (const Structure::Message& message : structure->messages) {
    if (message.leaves.size() == 1) fused.run_alone(std::size_t(message.leaves.front()));
    else fused.run_together(message);
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
         nb::object run) {
        const auto server = std::make_shared<TreeServer>(
            TreeServer{.type = makes, .allows = allows, .views = views, .finish = finish, .run = run});
        for (const nb::handle type : types) serve_trees(type, server);
      },
      nb::arg("types"), nb::kw_only(), nb::arg("makes").none() = nb::none(), nb::arg("allows").none() = nb::none(),
      nb::arg("views").none() = nb::none(), nb::arg("finish").none() = nb::none(), nb::arg("run").none() = nb::none(),
      "Nests of arrays of exactly these types are packed, sent and unpacked in one step.");
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
