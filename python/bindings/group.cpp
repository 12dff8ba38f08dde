// group.cpp: groups in Python: who is in them, calls on them, groups from groups.
// SPDX-License-Identifier: Apache-2.0
#include <tutti/group.hpp>

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <tutti/error.hpp>

#include "bindings/bind.hpp"
#include "bindings/convert.hpp"
#include "bindings/gil.hpp"
#include "bindings/range.hpp"
#include "bindings/signals.hpp"
#include "bindings/site.hpp"
#include "bindings/work.hpp"
#include "group/core.hpp"
#include "group/runtime.hpp"

namespace tutti::python {
namespace {

using Handle = std::shared_ptr<Member>;

/// The arrays of a call, and the Python objects behind them.
struct Arrays {
  Terms terms;
  nb::object input, output;
};

Arrays arrays_of(nb::handle input, nb::handle output, bool differentiated, nb::handle timeout,
                 Memory memory = Memory::any) {
  Held in = hold(input, Use::read, memory), out = hold(output, Use::write, memory);
  return {.terms = {.input = in.view,
                    .output = out.view,
                    .differentiated = differentiated,
                    .timeout = timeout_from(timeout)},
          .input = std::move(in.owner),
          .output = std::move(out.owner)};
}

/// Results whose shape comes from the other ranks are made in the CPU's memory.
Arrays host_arrays_of(nb::handle input, nb::handle output, bool differentiated, nb::handle timeout) {
  return arrays_of(input, output, differentiated, timeout, Memory::cpu);
}

void run(const Handle& self, const Call& call, nb::handle input, nb::handle out, bool differentiated,
         nb::handle timeout) {
  forget_ended();
  // The others come by apply(), which has made theirs.
  const Range range(call.verb == Verb::barrier ? name_of(call.verb) : std::string_view());
  const Arrays arrays = prepared(self, call, [&] { return arrays_of(input, out, differentiated, timeout); });
  run_call(self, call, arrays.terms);
}

PendingWork start(const Handle& self, const Call& call, nb::handle input, nb::handle out, bool differentiated,
                  nb::handle timeout, nb::object result, nb::object finish, nb::handle keep) {
  forget_ended();
  const Arrays arrays = prepared(self, call, [&] { return arrays_of(input, out, differentiated, timeout); });
  const std::uint32_t site = recorded_site(*self);
  Started started = without_gil([&] { return start_call(self, call, arrays.terms, site); });
  if (result.is_none()) result = nb::borrow(out);
  return PendingWork(std::move(started), nb::make_tuple(arrays.input, arrays.output, keep), std::move(result),
                     std::move(finish));
}

/// Ranks tell each other sizes first. The result: an Array, or None if it went into `out`.
nb::object run_sized(const Handle& self, const Call& call, nb::handle input, nb::handle out, bool differentiated,
                     nb::handle timeout) {
  forget_ended();
  Arrays arrays = prepared(self, call, [&] { return host_arrays_of(input, out, differentiated, timeout); });
  arrays.terms.learns = std::make_shared<Array>();
  run_call(self, call, arrays.terms);
  return out.is_none() ? nb::cast(std::move(*arrays.terms.learns)) : nb::object(nb::none());
}

PendingWork start_sized(const Handle& self, const Call& call, nb::handle input, nb::handle out, bool differentiated,
                        nb::handle timeout, nb::object finish) {
  forget_ended();
  Arrays arrays = prepared(self, call, [&] { return host_arrays_of(input, out, differentiated, timeout); });
  arrays.terms.learns = std::make_shared<Array>();
  const std::uint32_t site = recorded_site(*self);
  Started started = without_gil([&] { return start_call(self, call, arrays.terms, site); });
  PendingWork work(std::move(started), nb::make_tuple(arrays.input, arrays.output), nb::borrow(out), std::move(finish));
  if (out.is_none()) work.learns = arrays.terms.learns;
  return work;
}

/// None: any.
std::uint32_t tag_from(std::optional<std::uint32_t> tag) { return tag.value_or(any_tag); }

PendingWork start_send(const Handle& self, nb::handle array, int dst, std::uint32_t tag, nb::handle timeout,
                       std::uint8_t kind) {
  forget_ended();
  const Held held = hold(array, Use::read);
  const MessageTerms message{.data = held.view,
                             .peer = dst,
                             .tag = tag,
                             .timeout = timeout_from(timeout),
                             .kind = kind,
                             .site = recorded_site(*self)};
  Started started = without_gil([&] { return start_message(self, message); });
  return PendingWork(std::move(started), held.owner, nb::none(), nb::none());
}

/// Into `array`; None: the work learns what comes.
PendingWork start_recv(const Handle& self, nb::handle array, std::optional<int> src, std::optional<std::uint32_t> tag,
                       nb::handle timeout, nb::object result, nb::object finish) {
  forget_ended();
  const bool learns = array.is_none();
  const Held held = learns ? Held{.owner = nb::none()} : hold(array, Use::write);
  const auto learned = learns ? std::make_shared<Array>() : nullptr;
  const Allocate allocate = learns ? allocate_as(learned) : Allocate();
  const MessageTerms message{.verb = Verb::recv,
                             .data = held.view,
                             .peer = src.value_or(any_source),
                             .tag = tag_from(tag),
                             .timeout = timeout_from(timeout),
                             .allocate = learns ? &allocate : nullptr,
                             .site = recorded_site(*self)};
  Started started = without_gil([&] { return start_message(self, message); });
  if (result.is_none()) result = nb::borrow(array);
  PendingWork work(std::move(started), held.owner, std::move(result), std::move(finish));
  work.learns = learned;
  return work;
}

void run_send(const Handle& self, nb::handle array, int dst, std::uint32_t tag, nb::handle timeout, std::uint8_t kind) {
  forget_ended();
  const Held held = hold(array, Use::read);
  run_message(self, {.data = held.view, .peer = dst, .tag = tag, .timeout = timeout_from(timeout), .kind = kind});
}

/// Into `array`, or (None) what comes; None where nothing does.
nb::object run_recv(const Handle& self, nb::handle array, std::optional<int> src, std::optional<std::uint32_t> tag,
                    nb::handle timeout) {
  forget_ended();
  MessageTerms message{
      .verb = Verb::recv, .peer = src.value_or(any_source), .tag = tag_from(tag), .timeout = timeout_from(timeout)};
  if (!array.is_none()) {
    const Held held = hold(array, Use::write);
    message.data = held.view;
    run_message(self, message);
    return nb::none();
  }
  const auto learned = std::make_shared<Array>();
  const Allocate allocate = allocate_as(learned);
  message.allocate = &allocate;
  learned->source = run_message(self, message).source;
  return learned->view.present() ? nb::cast(std::move(*learned)) : nb::object(nb::none());
}

/// What `make` gives. A signal that came while the group was made is handled now: if its handler raised after the call has returned, the
/// others would wait for a rank that never got the group.
template <class Make>
Handle made(Make make) {
  Group group = without_gil(make);
  try {
    check_signals();
  } catch (const nb::python_error&) {
    const WithoutGil release;
    try {
      if (group.rank() >= 0) group.core()->abort("it was interrupted while it made the group");
    } catch (const Error&) {  // it is broken already
    }
    throw;
  }
  return enroll(std::move(group));
}

/// None: as the group that it is made of.
GroupOptions group_options(nb::handle timeout, nb::handle backend) {
  std::string name;
  if (!backend.is_none() && !nb::try_cast<std::string>(backend, name))
    throw InvalidArgument(
        fmt::format("Group: backend={} is no name; it is auto, native, shm, ucx or mpi", nb::repr(backend).c_str()));
  return {.backend = std::move(name), .timeout = timeout_from(timeout)};
}

std::vector<int> ranks_from(nb::handle given) {
  const auto wrong = [&] {
    return InvalidArgument(fmt::format("Group: {} is no list of ranks, which are numbers, as in tutti.Group([0, 1])",
                                       nb::repr(given).c_str()));
  };
  std::vector<int> ranks;
  try {
    for (const nb::handle each : nb::iter(given)) {
      int rank = 0;
      if (!nb::try_cast<int>(each, rank)) throw wrong();
      ranks.push_back(rank);
    }
  } catch (const nb::python_error& error) {
    if (!error.matches(PyExc_TypeError)) throw;
    throw wrong();  // nothing to go through
  }
  return ranks;
}

Handle subgroup(const Handle& self, nb::handle given, nb::handle timeout, nb::handle backend) {
  const std::vector<int> ranks = ranks_from(given);
  const GroupOptions options = group_options(timeout, backend);
  return made([&] { return self->group().subgroup(ranks, options); });
}

Handle shrink(const Handle& self, nb::handle timeout) {
  const Duration most = timeout_from(timeout);
  return made([&] { return self->group().shrink({.timeout = most}); });
}

/// A color or a key, as the core takes it.
int number_of_split(nb::handle value, const char* name) {
  int number = 0;
  if (nb::try_cast<int>(value, number)) return number;
  throw InvalidArgument(fmt::format("split: {}={} is no integer of 32 bits", name, nb::repr(value).c_str()));
}

/// Throws for an option that split does not have.
void check_options(const nb::kwargs& others) {
  if (others.size() == 0) return;
  const nb::object name = nb::list(others.keys())[0];
  throw InvalidArgument(
      fmt::format("split: there is no {}=; it takes color, key, timeout and backend", nb::str(name).c_str()));
}

Handle split(const Handle& self, nb::handle color, nb::handle key, nb::handle timeout, nb::handle backend,
             const nb::kwargs& others) {
  int own_color = -1, own_key = 0;
  GroupOptions options{};
  try {
    check_options(others);
    if (!color.is_none()) own_color = number_of_split(color, "color");
    own_key = number_of_split(key, "key");
    options = group_options(timeout, backend);
  } catch (const InvalidArgument& error) {
    decline(self, {.verb = Verb::all_gather}, error.what());  // by which the ranks tell each other their colors
    throw;
  }
  return made([&] { return self->group().split(own_color, own_key, options); });
}

Array memory(const Handle& self, std::int64_t bytes) {
  if (bytes < 0) throw InvalidArgument(fmt::format("empty: {} bytes is less than none", bytes));
  const WithoutGil release;
  Array array;
  array.memory = self->core().runtime().take_memory(std::size_t(bytes));
  array.view = View(array.memory.get(), DType::uint8, std::span(&bytes, 1));
  return array;
}

}  // namespace

void bind_group(nb::module_& m) {
  const auto none = nb::none();
  nb::class_<Member>(m, "Group", nb::dynamic_attr(), "Ranks that work together. Every verb is a method, too.")
      .def(nb::new_([](nb::object ranks, nb::object timeout, nb::object backend) {
             return subgroup(world(), ranks, timeout, backend);
           }),
           nb::arg("ranks").none(), nb::arg("timeout") = none, nb::arg("backend") = none)
      .def_prop_ro("id", &Member::id, "A number that no other group of this process ever has.")
      .def_prop_ro("rank", &Member::rank, "This process's rank in the group; -1 on one that is not a member.")
      .def_prop_ro("size", &Member::size)
      .def_prop_ro(
          "members", [](Member& g) { return std::vector<int>(g.group().members().begin(), g.group().members().end()); },
          "Ranks in the world, in the group's order.")
      .def_prop_ro("backend", [](Member& g) { return g.group().backend(); })
      .def("run", run, nb::arg("call"), nb::arg("input").none(), nb::arg("out").none() = none, nb::kw_only(),
           nb::arg("differentiated") = false, nb::arg("timeout") = none)
      .def("start", start, nb::arg("call"), nb::arg("input").none(), nb::arg("out").none() = none, nb::kw_only(),
           nb::arg("differentiated") = false, nb::arg("timeout") = none, nb::arg("result") = none,
           nb::arg("finish") = none, nb::arg("keep") = nb::tuple())
      .def("run_sized", run_sized, nb::arg("call"), nb::arg("input").none(), nb::arg("out").none() = none,
           nb::kw_only(), nb::arg("differentiated") = false, nb::arg("timeout") = none)
      .def("start_sized", start_sized, nb::arg("call"), nb::arg("input").none(), nb::arg("out").none() = none,
           nb::kw_only(), nb::arg("differentiated") = false, nb::arg("timeout") = none, nb::arg("finish") = none)
      .def("start_send", start_send, nb::arg("array"), nb::arg("dst"), nb::arg("tag") = 0, nb::arg("timeout") = none,
           nb::arg("kind") = 0)
      .def("start_recv", start_recv, nb::arg("array").none(), nb::arg("src").none(), nb::arg("tag").none() = 0,
           nb::arg("timeout") = none, nb::arg("result") = none, nb::arg("finish") = none)
      .def("run_send", run_send, nb::arg("array"), nb::arg("dst"), nb::arg("tag") = 0, nb::arg("timeout") = none,
           nb::arg("kind") = 0)
      .def("run_recv", run_recv, nb::arg("array").none(), nb::arg("src").none(), nb::arg("tag").none() = 0,
           nb::arg("timeout") = none)
      .def("split", split, nb::arg("color").none(), nb::arg("key").none() = 0, nb::arg("timeout") = none,
           nb::arg("backend") = none, nb::arg("others"),
           "Ranks with the same color come together, ordered by key. A rank with color None or a negative one stays "
           "out: it "
           "gets a group of rank -1 and size 0, whose verbs raise.")
      .def("subgroup", subgroup, nb::arg("ranks").none(), nb::arg("timeout") = none, nb::arg("backend") = none,
           "The listed ranks of this group, in that order. Only they need call it. backend: auto, native, shm, ucx, "
           "mpi, nccl or cuda, the same on all members; without it, as this group.")
      .def("shrink", shrink, nb::arg("timeout") = none,
           "The members that are left, in their order, as a new group: after a PeerLost, to go on. Every one of them "
           "calls it.")
      .def("duplicate", [](const Handle& self) { return without_gil([&] { return self->duplicate(); }); })
      .def("memory", memory, nb::arg("bytes"))
      .def(
          "abort",
          [](const Handle& self, std::string_view reason) {
            const WithoutGil release;
            self->abort(reason);
          },
          nb::arg("reason"), "Breaks the group on every member.")
      .def("refuse", decline, nb::arg("call"), nb::arg("reason"),
           "Tells the others that this rank takes no part in the call, which is its next one.")
      .def("__repr__",
           [](Member& g) { return fmt::format("Group(rank {} of {}, {})", g.rank(), g.size(), g.group().backend()); });
  m.def("group_of", group_of, nb::arg("id"));
}

}  // namespace tutti::python
