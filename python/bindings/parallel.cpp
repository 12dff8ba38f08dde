// parallel.cpp: shards, samples, buckets and the arrangement of meshes, for the layers that train.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <tuple>

#include <tutti/buckets.hpp>
#include <tutti/error.hpp>
#include <tutti/mesh.hpp>
#include <tutti/shard.hpp>

#include "bindings/array.hpp"
#include "bindings/bind.hpp"
#include "bindings/convert.hpp"
#include "bindings/gil.hpp"
#include "bindings/registry.hpp"
#include "bindings/running.hpp"
#include "parallel/halo.hpp"

namespace tutti::python {
namespace {

using Numbers = std::vector<std::int64_t>;

Array array_of(const Numbers& numbers) {
  const auto count = static_cast<std::int64_t>(numbers.size());
  Array array = new_array(DType::int64, std::span(&count, 1));
  if (count > 0) std::memcpy(array.view.data(), numbers.data(), numbers.size() * sizeof(std::int64_t));
  return array;
}

Rest rest_from(std::string_view name) {
  if (name == "pad") return Rest::pad;
  if (name == "drop") return Rest::drop;
  if (name == "keep") return Rest::keep;
  throw InvalidArgument(
      fmt::format("rest=\"{}\" is not known: \"pad\" repeats a few samples, \"drop\" leaves a few out, "
                  "\"keep\" gives some ranks one more",
                  name));
}

Array samples_of(std::int64_t count, std::pair<int, int> rank_and_size,
                 std::pair<std::uint64_t, std::uint64_t> seed_and_epoch, bool shuffle, std::string_view rest) {
  return array_of(shard_indices(
      count, rank_and_size.first, rank_and_size.second,
      {.seed = seed_and_epoch.first, .epoch = seed_and_epoch.second, .shuffle = shuffle, .rest = rest_from(rest)}));
}

std::vector<std::tuple<int, std::int64_t, std::int64_t, std::int64_t>> pieces_from(const Numbers& sizes,
                                                                                   std::int64_t begin,
                                                                                   std::int64_t length) {
  std::vector<std::tuple<int, std::int64_t, std::int64_t, std::int64_t>> result;
  for (const ShardPiece& piece : pieces_of(sizes, {begin, length})) {
    result.emplace_back(piece.shard, piece.offset, piece.begin, piece.length);
  }
  return result;
}

std::vector<std::vector<int>> buckets_for(const std::vector<std::pair<std::int64_t, std::string>>& items,
                                          const std::vector<int>& order, std::int64_t bytes, std::int64_t first_bytes) {
  std::vector<BucketItem> known;
  for (const auto& [size, dtype] : items) known.push_back({size, dtype_from_name(dtype)});
  return plan_buckets(known, order, {.bytes = bytes, .first_bytes = first_bytes});
}

void bind_buckets(nb::module_& m) {
  m.def("plan_buckets", buckets_for, nb::arg("items"), nb::arg("order"), nb::arg("bytes"), nb::arg("first_bytes"),
        "Which of the items (bytes, dtype) share a bucket, if they become ready in this order.");
  nb::class_<BucketSchedule>(m, "BucketSchedule", "Tells which buckets can start, in the same order on every rank.")
      .def(nb::init<std::vector<std::vector<int>>>(), nb::arg("plan"))
      .def("ready", &BucketSchedule::ready, nb::arg("item"))
      .def("begin", &BucketSchedule::begin)
      .def("missing", &BucketSchedule::missing)
      .def_prop_ro("arrivals", [](const BucketSchedule& s) { return s.arrivals(); })
      .def_prop_ro("plan", [](const BucketSchedule& s) { return s.plan(); });
}

void make_mesh(Mesh* self, const std::shared_ptr<Member>& group,
               const std::vector<std::tuple<std::string, int, bool>>& axes, nb::handle timeout) {
  std::vector<MeshAxis> named;
  for (const auto& [name, size, periodic] : axes) named.push_back({name, size, periodic});
  const CallOptions options{.timeout = timeout_from(timeout)};
  const WithoutGil without_gil;
  new (self) Mesh(group->group(), std::move(named), options);
}

/// Fills the margins of an array, in place. As Mesh::exchange, with an ear for Ctrl-C.
void exchange(Mesh& mesh, const std::shared_ptr<Member>& group, nb::handle array, std::vector<int> halo,
              std::vector<int> axes, nb::handle timeout) {
  forget_ended();
  const Held held = hold(array, Use::write);
  const HaloOptions options{.halo = std::move(halo), .axes = std::move(axes), .timeout = timeout_from(timeout)};
  const auto found = parallel::halo_axes(held.view, mesh.axes().size(), options);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::string& name = mesh.axes()[i].name;
    Started started{.member = group};
    if (found[i].halo > 0) {
      const WithoutGil release;
      const auto slabs =
          parallel::slabs_of(held.view, found[i], i, {mesh.neighbour(name, -1), mesh.neighbour(name, 1)});
      start_exchange(started, numbered(slabs, mesh.next_number(i)), options.timeout);
    }
    complete(started);
  }
}

/// Neighbour collectives, likewise.
void exchange_parts(Mesh& mesh, const std::shared_ptr<Member>& group, nb::handle data, nb::handle out, bool sends_all,
                    nb::handle timeout) {
  forget_ended();
  const Held in = hold(data, Use::read), result = hold(out, Use::write);
  const parallel::NeighbourParts parts{.verb = sends_all ? "neighbour_all_gather" : "neighbour_all_to_all",
                                       .data = in.view,
                                       .out = result.view,
                                       .mesh_axes = mesh.axes().size(),
                                       .sends_all = sends_all};
  parallel::check_parts(parts);
  const Duration most = timeout_from(timeout);
  Started started{.member = group};
  {
    const WithoutGil release;
    for (std::size_t i = 0; i < mesh.axes().size(); ++i) {
      const std::string& name = mesh.axes()[i].name;
      const auto slabs = slabs_of(parts, i, {mesh.neighbour(name, -1), mesh.neighbour(name, 1)});
      start_exchange(started, numbered(slabs, mesh.next_number(i)), most);
    }
  }
  complete(started);
}

void bind_mesh(nb::module_& m) {
  m.def(
      "halo_axes",
      [](const std::vector<std::int64_t>& shape, std::size_t mesh_axes, std::vector<int> halo, std::vector<int> axes) {
        static float nowhere{};  // only the shape is looked at
        std::vector<std::pair<int, std::int64_t>> found;
        const View array(&nowhere, DType::float32, shape);
        for (const auto& each :
             parallel::halo_axes(array, mesh_axes, {.halo = std::move(halo), .axes = std::move(axes)}))
          found.emplace_back(each.axis, each.halo);
        return found;
      },
      nb::arg("shape"), nb::arg("mesh_axes"), nb::arg("halo"), nb::arg("axes"),
      "The axis of an array and the width of its margins, for each axis of a mesh.");
  nb::class_<Mesh>(m, "Mesh", "A grid of ranks. tutti.Mesh is what people use.")
      .def("__init__", make_mesh, nb::arg("group"), nb::arg("axes"), nb::arg("timeout").none() = nb::none())
      .def(
          "group",
          [](Mesh& mesh, const std::vector<std::string>& axes) {
            const WithoutGil without_gil;
            return enroll(mesh.group(axes));
          },
          nb::arg("axes"))
      .def_prop_ro("axes",
                   [](const Mesh& mesh) {
                     std::vector<std::tuple<std::string, int, bool>> axes;
                     for (const MeshAxis& axis : mesh.axes()) axes.emplace_back(axis.name, axis.size, axis.periodic);
                     return axes;
                   })
      .def_prop_ro("coordinates", [](const Mesh& mesh) { return mesh.coordinates(); })
      .def("rank_at", [](const Mesh& mesh, const std::vector<int>& place) { return mesh.rank_at(place); })
      .def("neighbour", &Mesh::neighbour, nb::arg("axis"), nb::arg("distance"))
      .def("exchange", exchange, nb::arg("group"), nb::arg("array"), nb::arg("halo"), nb::arg("axes"),
           nb::arg("timeout").none(), "Fills the margins of an array, in place.")
      .def("exchange_parts", exchange_parts, nb::arg("group"), nb::arg("data"), nb::arg("out"), nb::arg("sends_all"),
           nb::arg("timeout").none(), "A part from each neighbour, and to each its own or the same.")
      .def("skip_exchange", &Mesh::skip_exchange)
      .def("describe", &Mesh::describe);
}

}  // namespace

void bind_parallel(nb::module_& m) {
  m.def("shard_sizes", &shard_sizes, nb::arg("count"), nb::arg("parts"), "Parts that differ by one element at most.");
  m.def("pieces_of", pieces_from, nb::arg("sizes"), nb::arg("begin"), nb::arg("length"),
        "Where a range lies in shards of these sizes: (shard, offset in it, offset in the range, length), …");
  m.def(
      "shuffled_indices",
      [](std::int64_t count, std::uint64_t seed, std::uint64_t epoch) {
        return array_of(shuffled_indices(count, seed, epoch));
      },
      nb::arg("count"), nb::arg("seed"), nb::arg("epoch"));
  m.def("shard_indices", samples_of, nb::arg("count"), nb::arg("rank_and_size"), nb::arg("seed_and_epoch"),
        nb::arg("shuffle"), nb::arg("rest"), "The samples of one rank in one epoch.");
  bind_mesh(m);
  bind_buckets(m);
}

}  // namespace tutti::python
