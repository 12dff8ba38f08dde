// call.cpp: calls, reductions and adjoints as Python values.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include <tutti/error.hpp>

#include "bindings/bind.hpp"
#include "bindings/convert.hpp"
#include "group/structure_words.hpp"
#include "parallel/adjoint.hpp"
#include "parallel/call.hpp"

namespace tutti::python {

using parallel::Adjoint;
using parallel::Call;
using parallel::call_named;
using parallel::decode_call;

namespace {

using Numbers = std::optional<std::vector<std::int64_t>>;

// Fields by name, so that Call(...) and replace(...) read them alike.
void set_field(Call& call, std::string_view key, nb::handle value) {
  if (key == "op") call.op = op_from(value);
  else if (key == "root") call.root = nb::cast<int>(value);
  else if (key == "axis") {
    call.stack = value.is_none();
    call.axis = call.stack ? 0 : nb::cast<int>(value);
  } else if (key == "concat_axis") call.concat_axis = nb::cast<int>(value);
  else if (key == "uneven") call.uneven = nb::cast<bool>(value);
  else if (key == "sizes") call.sizes = nb::cast<Numbers>(value).value_or(Sizes());
  else if (key == "recv_sizes") call.recv_sizes = nb::cast<Numbers>(value).value_or(Sizes());
  else if (key == "pairs") call.pairs = nb::cast<Pairs>(value);
  else if (key == "reverse") call.reverse = nb::cast<bool>(value);
  else if (key == "dst") call.destination = nb::cast<int>(value);
  else if (key == "src") call.source = nb::cast<int>(value);
  else if (key == "tag") call.tag = nb::cast<std::uint32_t>(value);
  else if (key == "structure") call.structure = nb::cast<std::uint64_t>(value);
  else if (key == "kind") call.kind = nb::cast<std::uint8_t>(value);
  else throw InvalidArgument(fmt::format("a call has no field {}", key));
}

Call changed(Call call, const nb::kwargs& fields) {
  for (const auto& [key, value] : fields) {
    const auto name = nb::cast<std::string>(key);
    try {
      set_field(call, name, value);
    } catch (const nb::cast_error&) {
      throw InvalidArgument(fmt::format("{}: {}={} is not what this argument takes", name_of(call), name,
                                        nb::cast<std::string>(nb::repr(value))));
    }
  }
  return call;
}

nb::object numbers_or_none(const Sizes& sizes) {
  return sizes.empty() ? nb::none() : nb::object(nb::tuple(nb::cast(sizes)));
}

std::vector<std::int64_t> shape_from(const nb::sequence& shape) {
  std::vector<std::int64_t> lengths;
  for (const nb::handle length : shape) lengths.push_back(nb::cast<std::int64_t>(length));
  return lengths;
}

nb::tuple shape_of(const Call& call, const nb::sequence& shape, int rank, int size) {
  return nb::tuple(nb::cast(output_shape(call, shape_from(shape), rank, size)));
}

void bind_op(nb::module_& m) {
  nb::class_<Op>(m, "Op", "How the ranks' elements become one.")
      .def_prop_ro("name", [](const Op& op) { return name_of(op); })
      .def_prop_ro("factor", &Op::factor)
      .def("__repr__", [](const Op& op) { return fmt::format("Op({})", name_of(op)); })
      .def("__eq__",
           [](const Op& op, nb::handle other) { return nb::isinstance<Op>(other) && nb::cast<Op>(other) == op; })
      .def("__hash__", [](const Op& op) { return std::hash<std::string>()(name_of(op)); })
      .def("__reduce__", [](const Op& op) {
        return nb::make_tuple(nb::module_::import_("tutti._calls.pickles").attr("op_named"),
                              nb::make_tuple(name_of(op)));
      });
  m.def(
      "premul", [](double factor) { return Op::premul(factor); }, nb::arg("factor"),
      "The sum of `factor` times each rank's contribution.");
  m.def(
      "op", [](nb::handle value) { return op_from(value); }, nb::arg("name"));
  m.def(
      "note_structure", [](std::uint64_t hash, const std::string& words) { note_structure(hash, words); },
      nb::arg("hash"), nb::arg("words"), "What a call's `structure` stands for, for messages about trees that differ.");
}

void bind_adjoint(nb::module_& m) {
  nb::class_<Adjoint>(m, "Adjoint", "How gradients flow back through a call.")
      .def_prop_ro("kind", [](const Adjoint& a) { return a.kind == Adjoint::Kind::linear ? "linear" : "select"; })
      .def_prop_ro("call", [](const Adjoint& a) { return a.call; })
      .def_ro("scale", &Adjoint::scale)
      .def_ro("adds_own", &Adjoint::adds_own)
      .def_ro("zero", &Adjoint::is_zero);
}

}  // namespace

Op op_from(nb::handle value) {
  if (nb::isinstance<Op>(value)) return nb::cast<Op>(value);
  const auto refusal = [&] {
    const auto hint = nb::cast<std::string>(nb::module_::import_("tutti._calls.hints").attr("op_hint")(value));
    return InvalidArgument(
        fmt::format("op={} is not a reduction here{}", nb::cast<std::string>(nb::repr(value)), hint));
  };
  if (!nb::isinstance<nb::str>(value)) throw refusal();
  const auto name = nb::cast<std::string>(value);
  constexpr std::string_view premul = "premul(";
  try {
    if (name.starts_with(premul) && name.ends_with(")")) return Op::premul(std::stod(name.substr(premul.size())));
    return op_from_name(name);
  } catch (const std::exception&) {
    throw refusal();
  }
}

void bind_call(nb::module_& m) {
  bind_op(m);
  bind_adjoint(m);
  m.def("call_names", parallel::call_names, "The verbs that are calls: collectives, and sendrecv.");
  nb::class_<Call>(m, "Call", "A collective as a value: everything but its arrays and its group.")
      .def("__init__", [](Call* self, std::string_view verb,
                          const nb::kwargs& fields) { new (self) Call(changed(call_named(verb), fields)); })
      .def_prop_ro("verb", [](const Call& c) { return name_of(c); })
      .def_prop_ro("op", [](const Call& c) { return c.op; })
      .def_ro("root", &Call::root)
      .def_prop_ro("axis",
                   [](const Call& c) { return c.stack ? nb::object(nb::none()) : nb::object(nb::int_(c.axis)); })
      .def_ro("concat_axis", &Call::concat_axis)
      .def_ro("uneven", &Call::uneven)
      .def_prop_ro("sizes", [](const Call& c) { return numbers_or_none(c.sizes); })
      .def_prop_ro("recv_sizes", [](const Call& c) { return numbers_or_none(c.recv_sizes); })
      .def_prop_ro("pairs", [](const Call& c) { return nb::tuple(nb::cast(c.pairs)); })
      .def_ro("reverse", &Call::reverse)
      .def_ro("dst", &Call::destination)
      .def_ro("src", &Call::source)
      .def_ro("tag", &Call::tag)
      .def_ro("structure", &Call::structure)
      .def_ro("kind", &Call::kind)
      .def_prop_ro("joins", [](const Call& c) { return joins(c.verb); })
      .def_prop_ro("splits", [](const Call& c) { return splits(c.verb); })
      .def_prop_ro("has_blocks", [](const Call& c) { return has_blocks(c.verb); })
      .def_prop_ro("keeps_shape", [](const Call& c) { return keeps_shape(c.verb); })
      .def_prop_ro("root_gives", [](const Call& c) { return root_gives(c.verb); })
      .def_prop_ro("root_gets", [](const Call& c) { return root_gets(c.verb); })
      .def_prop_ro("learns_sizes", [](const Call& c) { return learns_sizes(c); })
      .def("encode", [](const Call& c) { return encode(c); })
      .def_static("decode", [](std::string_view text) { return decode_call(text); })
      .def("replace", [](const Call& c, const nb::kwargs& fields) { return changed(c, fields); })
      .def("output_shape", shape_of, nb::arg("shape"), nb::arg("rank"), nb::arg("size"))
      .def(
          "adjoint",
          [](const Call& c, const std::optional<nb::sequence>& shape, int rank, int size) {
            return shape ? adjoint_of(c, shape_from(*shape), rank, size) : adjoint_of(c, rank, size);
          },
          nb::arg("shape").none(), nb::arg("rank"), nb::arg("size"),
          "How gradients flow back; `shape` is that of the input on this rank, None where it is not known yet.")
      .def("__eq__",
           [](const Call& c, nb::handle other) { return nb::isinstance<Call>(other) && nb::cast<Call>(other) == c; })
      .def("__hash__", [](const Call& c) { return std::hash<std::string>()(encode(c)); })
      .def("__repr__", [](const Call& c) { return fmt::format("Call({})", encode(c)); })
      .def("__reduce__", [](const Call& c) {
        return nb::make_tuple(nb::module_::import_("tutti._calls.pickles").attr("call_decoded"),
                              nb::make_tuple(encode(c)));
      });
}

}  // namespace tutti::python
