// found_message.cpp: messages that a probe has found, for Python.
// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <utility>

#include <tutti/error.hpp>

#include "bindings/bind.hpp"
#include "bindings/convert.hpp"
#include "bindings/gil.hpp"
#include "bindings/running.hpp"
#include "group/core.hpp"
#include "group/operation.hpp"

namespace tutti::python {
namespace {

using Handle = std::shared_ptr<Member>;

/// A message, and the group that it is in.
struct FoundMessage {
  Handle member;
  Message message;
};

MessageTerms probe_for(std::optional<int> src, std::optional<std::uint32_t> tag, nb::handle timeout) {
  return {.verb = Verb::recv,
          .peer = src.value_or(any_source),
          .tag = tag.value_or(any_tag),
          .timeout = timeout_from(timeout),
          .probes = true};
}

FoundMessage probe(const Handle& self, std::optional<int> src, std::optional<std::uint32_t> tag, nb::handle timeout) {
  forget_ended();
  const MessageTerms terms = probe_for(src, tag, timeout);
  Started started = without_gil([&] { return start_message(self, terms); });
  complete(started);  // where it throws, nothing is reserved any more
  return {self, Message(self->group().core(), started.operations[0])};
}

std::optional<FoundMessage> iprobe(const Handle& self, std::optional<int> src, std::optional<std::uint32_t> tag) {
  forget_ended();
  const MessageTerms terms = probe_for(src, tag, nb::none());
  const WithoutGil release;
  const GroupCore::Entry entry(self->core(), "iprobe");
  auto found = self->core().look_for_message(terms);
  if (!found) return std::nullopt;
  return FoundMessage{self, Message(self->group().core(), std::move(found))};
}

/// Into `array`, or (None) as an array of its own.
nb::object recv_found(FoundMessage& found, nb::handle array, nb::handle timeout) {
  forget_ended();
  if (!found.message.valid())
    throw InvalidArgument("recv: this message was received before; a probe finds one message, for one receive");
  const bool learns = array.is_none();
  const Held held = learns ? Held{} : hold(array, Use::write);
  const auto learned = std::make_shared<Array>();
  const Allocate allocate = allocate_as(learned);
  const std::shared_ptr<Operation> probe = found.message.probe();
  learned->source = found.message.source();
  MessageTerms terms{.verb = Verb::recv,
                     .data = held.view,
                     .peer = found.message.source(),
                     .tag = found.message.tag(),
                     .timeout = timeout_from(timeout),
                     .allocate = learns ? &allocate : nullptr,
                     .found = probe.get()};
  const auto let_go = [&] {  // accepted, and no longer there to go back
    if (probe->transfer.handle == nullptr) found.message = Message();
  };
  try {
    const int source = run_message(found.member, terms).source;
    learned->source = source;
  } catch (...) {
    let_go();
    throw;
  }
  let_go();
  return learns ? nb::cast(std::move(*learned)) : nb::object(nb::none());
}

}  // namespace

void bind_found_message(nb::module_& m) {
  nb::class_<FoundMessage>(m, "FoundMessage", "A message that a probe has reserved. Dropped, it goes back.")
      .def_prop_ro("source", [](const FoundMessage& found) { return found.message.source(); })
      .def_prop_ro("tag", [](const FoundMessage& found) { return found.message.tag(); })
      .def_prop_ro("count", [](const FoundMessage& found) { return found.message.count(); })
      .def_prop_ro("dtype", [](const FoundMessage& found) { return name_of(found.message.dtype()); })
      .def_prop_ro("shape", [](const FoundMessage& found) { return nb::tuple(nb::cast(found.message.shape())); })
      .def_prop_ro("kind", [](const FoundMessage& found) { return found.message.kind(); })
      .def_prop_ro("is_valid", [](const FoundMessage& found) { return found.message.valid(); })
      .def("recv", recv_found, nb::arg("array").none(), nb::arg("timeout") = nb::none());
  m.def("probe", probe, nb::arg("group"), nb::arg("src").none(), nb::arg("tag").none(), nb::arg("timeout").none());
  m.def("iprobe", iprobe, nb::arg("group"), nb::arg("src").none(), nb::arg("tag").none());
}

}  // namespace tutti::python
