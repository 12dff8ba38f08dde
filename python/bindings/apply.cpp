// apply.cpp: the entry of every verb: serves NumPy arrays; everything else goes to tutti/_dispatch.py, and messages
// to tutti/_messages.py.
// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>

#include <array>
#include <optional>
#include <unordered_map>
#include <utility>

#include <tutti/error.hpp>

#include "bindings/bind.hpp"
#include "bindings/convert.hpp"
#include "bindings/fused.hpp"
#include "bindings/gil.hpp"
#include "bindings/numpy.hpp"
#include "bindings/range.hpp"
#include "bindings/site.hpp"
#include "bindings/tensor.hpp"
#include "bindings/work.hpp"
#include "group/message.hpp"

namespace tutti::python {
namespace {

/// The result has the shape of this rank's input.
bool keeps_shape(const Call& call, int rank) {
  return (tutti::keeps_shape(call.verb) && !root_gives(call.verb)) || gives_input_back(call, rank);
}

nb::object result_for(const Call& call, const Member& member, nb::handle x, const View& view) {
  if (keeps_shape(call, member.rank())) return new_numpy_like(x, view.shape());
  return new_numpy_like(x, output_shape(call, view.shape(), member.rank(), member.size()));
}

/// In eager code only the root of a broadcast or scatter need have an array.
bool root_tells(const Call& call) { return root_gives(call.verb); }

nb::object learned(const std::shared_ptr<Array>& array) {
  const nb::object owner = nb::cast(*array);
  return numpy_over(array->view, owner);
}

nb::object as_numpy() {
  return nb::cpp_function([](nb::object array) { return array.attr("numpy")(); });
}

/// A call on NumPy arrays, ready to go.
struct Prepared {
  Terms terms;
  nb::object result;  // None: becomes known during the call
};

Prepared prepare_numpy(const Call& call, nb::handle x, nb::handle out, const Member& member, Duration timeout) {
  Prepared prepared{.terms = {.input = view_of_numpy(x), .timeout = timeout}, .result = nb::borrow(out)};
  Terms& terms = prepared.terms;
  const bool at_root = member.rank() == call.root;
  if (root_tells(call) && !at_root) terms.input = View();
  const bool learns = learns_sizes(call) || root_tells(call);
  if (learns) terms.learns = std::make_shared<Array>();
  if (out.is_none() && !learns) {
    prepared.result = result_for(call, member, x, terms.input);
  } else if (out.is_none() && call.verb == Verb::broadcast && !at_root) {
    prepared.result = new_numpy_like(x, view_of_numpy(x).shape());  // what the caller passed says what it expects
  }
  if (!prepared.result.is_none()) terms.output = view_of_numpy(prepared.result);
  return prepared;
}

nb::object apply_numpy(const Call& call, nb::handle x, nb::handle out, const std::shared_ptr<Member>& member,
                       bool async_op, nb::handle timeout) {
  auto [terms, result] =
      prepared(member, call, [&] { return prepare_numpy(call, x, out, *member, timeout_from(timeout)); });
  const bool gives_learned = result.is_none();
  if (!async_op) {
    run_call(member, call, terms);
    return gives_learned ? learned(terms.learns) : result;
  }
  const std::uint32_t site = recorded_site(*member);
  Started started = without_gil([&] { return start_call(member, call, terms, site); });
  PendingWork work(std::move(started), nb::make_tuple(x, result), result,
                   gives_learned ? as_numpy() : nb::object(nb::none()));
  if (gives_learned) work.learns = terms.learns;
  return nb::cast(std::move(work));
}

/// By the exact type of the array: whose adapter asked to be called at once.
std::unordered_map<PyObject*, nb::object>& servers() {  // under the GIL
  static auto* const all = new std::unordered_map<PyObject*, nb::object>;
  return *all;
}

/// Types are kept, so that an address stays its type's own.
void serve(nb::handle type, nb::object function) { servers()[type.inc_ref().ptr()] = std::move(function); }

nb::object dispatch(const Call& call, nb::handle x, nb::handle out, const std::shared_ptr<Member>& member,
                    bool async_op, nb::handle timeout) {
  static PyObject* const function =
      nb::object(nb::module_::import_("tutti._calls.dispatch").attr("dispatch")).release().ptr();
  const auto server = servers().find(x.type().ptr());
  const nb::handle next = server != servers().end() ? server->second : nb::handle(function);
  return next(call, x, out, member, async_op, timeout);
}

std::shared_ptr<Member> member_of(nb::handle group) {
  if (group.is_none()) return world();
  std::shared_ptr<Member> member;
  if (!nb::try_cast(group, member, false)) {
    nb::module_::import_("tutti._calls.dispatch")
        .attr("group_or_world")(group);  // raises, and says what to pass instead
  }
  static_cast<void>(member->core());  // raises in an empty group
  return member;
}

bool is_container(nb::handle x) {
  return PyList_CheckExact(x.ptr()) || PyTuple_CheckExact(x.ptr()) || PyDict_CheckExact(x.ptr());
}

/// Whether the elements of a NumPy array have a mean among them; arrays that cannot be sent have none.
bool is_averaged(nb::handle x) {
  try {
    const DType dtype = view_of_numpy(x).dtype();
    return is_floating(dtype) || is_complex(dtype);
  } catch (const Error&) {
    return false;
  }
}

nb::object apply(const Call& call, nb::handle x, nb::handle out, nb::handle group, bool async_op, nb::handle timeout) {
  forget_ended();
  const Range range(call.is_sendrecv ? "sendrecv" : name_of(call.verb));
  const auto member = member_of(group);
  if (is_numpy(x) && (out.is_none() || is_numpy(out))) {
    return apply_numpy(call, x, out, member, async_op, timeout);
  }
  if (!async_op && is_container(x)) {
    if (nb::object result = apply_fused(member, call, x, out, timeout_from(timeout)); result.is_valid()) return result;
  } else if (!async_op) {
    if (nb::object result = apply_to_tensor(member, call, x, out, timeout); result.is_valid()) return result;
  }
  return dispatch(call, x, out, member, async_op, timeout);
}

/// The world's array, a new result, no deadline of its own. Two arguments that are never None get the quickest entry
/// that nanobind has.
nb::object apply_plain(const Call& call, nb::handle x) {
  return apply(call, x, nb::none(), nb::none(), false, nb::none());
}

/// tutti.average of what is usual: a tree of floating-point arrays, or one of NumPy's. None: not served here.
nb::object average(nb::handle x, nb::handle group, nb::handle timeout) {
  static const auto* const mean = new Call{.verb = Verb::all_reduce, .op = Op::mean};
  forget_ended();
  const Range range("average");
  if (is_container(x)) {
    nb::object result = apply_fused(member_of(group), *mean, x, nb::none(), timeout_from(timeout), Elements::floating);
    return result.is_valid() ? result : nb::none();
  }
  if (!is_numpy(x) || !is_averaged(x)) return nb::none();
  return apply_numpy(*mean, x, nb::none(), member_of(group), false, timeout);
}

/// Of _messages/messages.py, for what is no NumPy array, and for what is wrong. Kept for good.
nb::handle function_for_messages(const char* verb) {
  return nb::object(nb::module_::import_("tutti._messages.messages").attr(verb)).release();
}

constexpr std::uint8_t numpy_kind = 0, torch_kind = 1;  // of tutti/_kinds.py

nb::object send(nb::handle x, nb::handle dst, nb::handle tag, nb::handle group, nb::handle timeout) {
  static const nb::handle in_python = function_for_messages("send");
  const Range range("send");
  MessageTerms message{.kind = numpy_kind};
  if (!nb::try_cast(dst, message.peer) || !nb::try_cast(tag, message.tag))
    return in_python(x, dst, tag, group, timeout);
  if (is_numpy(x)) {
    message.data = view_of_numpy(x);
  } else if (view_of_tensor(x, message.data)) {
    message.kind = torch_kind;
  } else {
    return in_python(x, dst, tag, group, timeout);
  }
  forget_ended();
  message.timeout = timeout_from(timeout);
  run_message(member_of(group), message);
  return nb::none();
}

/// NumPy's arrays, and whatever comes if it is one of NumPy's.
nb::object recv(nb::handle src, nb::handle tag, nb::handle like, nb::handle out, nb::handle group, nb::handle timeout) {
  static const nb::handle in_python = function_for_messages("recv"), made = function_for_messages("made");
  const Range range("recv");
  MessageTerms message{.verb = Verb::recv, .peer = any_source, .tag = any_tag};
  const bool is_plain = (src.is_none() || (nb::try_cast(src, message.peer) && message.peer != any_source)) &&
                        (tag.is_none() || nb::try_cast(tag, message.tag)) && (like.is_none() || out.is_none()) &&
                        (out.is_none() || is_numpy(out)) && (like.is_none() || is_numpy(like));
  if (is_plain && !out.is_none()) message.data = view_of_numpy(out);
  if (!is_plain || message.data.is_read_only()) return in_python(src, tag, like, out, group, timeout);
  forget_ended();
  message.timeout = timeout_from(timeout);
  const auto member = member_of(group);
  if (!out.is_none()) {
    run_message(member, message);
    return nb::borrow(out);
  }
  const auto array = std::make_shared<Array>();
  const Allocate allocate = allocate_as(array);
  message.allocate = &allocate;
  array->source = run_message(member, message).source;
  if (!array->view.present()) return nb::none();
  if (array->kind == numpy_kind) return learned(array);
  return made(nb::cast(std::move(*array)), like);
}

}  // namespace

void bind_apply(nb::module_& m) {
  m.def("apply_plain", apply_plain);
  m.def("apply", apply, nb::arg("call"), nb::arg("x").none(), nb::arg("out").none(), nb::arg("group").none(),
        nb::arg("async_op"), nb::arg("timeout").none());
  m.def("average", average, nb::arg("tree").none(), nb::arg("group").none(), nb::arg("timeout").none());
  m.def("send", send, nb::arg("x").none(), nb::arg("dst").none(), nb::arg("tag").none(), nb::arg("group").none(),
        nb::arg("timeout").none());
  m.def("recv", recv, nb::arg("src").none(), nb::arg("tag").none(), nb::arg("like").none(), nb::arg("out").none(),
        nb::arg("group").none(), nb::arg("timeout").none());
  m.def("serve", serve, nb::arg("type"), nb::arg("function"),
        "Calls on arrays of exactly this type go to `function` at once, past _calls/dispatch.py.");
}

}  // namespace tutti::python
