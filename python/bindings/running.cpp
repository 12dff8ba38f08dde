// running.cpp: calls under way on behalf of Python.
// SPDX-License-Identifier: Apache-2.0
#include "bindings/running.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <list>

#include <tutti/error.hpp>

#include "bindings/gil.hpp"
#include "bindings/gil_while_brief.hpp"
#include "bindings/signals.hpp"
#include "bindings/site.hpp"
#include "cuda/strided.hpp"
#include "group/core.hpp"
#include "group/operation.hpp"
#include "group/runtime.hpp"
#include "kernel/kernel.hpp"

namespace tutti::python {
namespace {

struct LeftBehind {
  Started started;
  nb::object owners;
};

std::list<LeftBehind>& left_behind() {  // under the GIL
  static auto* list = new std::list<LeftBehind>;
  return *list;
}

void make_request(const Call& call, const Terms& terms, Request& request) {
  request = request_of(call, terms.input, terms.output);
  request.differentiated = terms.differentiated;
  if (!terms.learns) return;
  if (root_gives(call.verb)) request.sizes_follow = true;
  request.allocate = allocate_as(terms.learns);
}

/// Off the root, reduce and gather give the input back.
void give_back(const Call& call, int rank, Terms& terms) {
  if (!gives_input_back(call, rank)) return;
  if (terms.learns) {
    *terms.learns = new_array(terms.input.dtype(), terms.input.shape());
    copy_elements(terms.input, terms.learns->view);
  } else if (terms.output.present()) {
    if (!std::ranges::equal(terms.input.shape(), terms.output.shape()) || terms.input.dtype() != terms.output.dtype()) {
      throw InvalidArgument(
          "off the root the result is the input again: the array for it must have the same shape and dtype");
    }
    copy_elements(terms.input, terms.output);
  }
  terms.output = View();
  terms.learns = nullptr;
}

/// Arrays, a reduction and a root, and nothing else.
bool is_simple(const Call& c, const Terms& t) {
  return c.axis == 0 && c.concat_axis == 0 && !c.stack && !c.uneven && c.structure == 0 && c.kind == 0 &&
         c.sizes.empty() && c.recv_sizes.empty() && c.pairs.empty() && !t.learns;
}

/// Hands `begin` the terms of the call, as the core takes them.
template <class Begin>
std::shared_ptr<Operation> begin_call(const Call& call, const Terms& terms, Begin begin) {
  Request request;
  if (terms.rest != nullptr || is_simple(call, terms)) {
    const Request* rest = terms.rest;
    if (rest != nullptr && !call.pairs.empty()) {  // what is kept of a tree is the same whatever the pairs are
      request = *rest;
      request.pairs = call.pairs;
      rest = &request;
    }
    return begin({.verb = call.verb,
                  .input = terms.input,
                  .output = terms.output,
                  .op = call.op,
                  .root = call.root,
                  .differentiated = terms.differentiated,
                  .rest = rest});
  }
  make_request(call, terms, request);
  return begin(terms_of(request));
}

Started run_once(const std::shared_ptr<Member>& member, const Call& call, const Terms& given, BlockingHook* hook,
                 std::uint32_t site) {
  Started started;
  GroupCore::Entry entry;
  entry.site = site;
  const auto run = [&](const Terms& terms) {
    auto operation = begin_call(
        call, terms, [&](const CallTerms& made) { return member->core().run(entry, made, terms.timeout, hook); });
    if (operation) started = {.member = member, .operations = {std::move(operation)}};
  };
  if (gives_input_back(call, member->rank())) {
    Terms terms = given;
    give_back(call, member->rank(), terms);
    run(terms);
  } else {
    run(given);
  }
  return started;
}

}  // namespace

Allocate allocate_as(std::shared_ptr<Array> result) {
  return [result = std::move(result)](DType dtype, std::span<const std::int64_t> shape, std::uint8_t kind) {
    *result = new_array(dtype, shape);
    result->kind = kind;
    return result->view;
  };
}

void copy_elements(const View& from, const View& to) {
  if (from.data() == to.data() || from.count() == 0) return;
  if (from.device().kind == Device::Kind::cuda) return cuda::copy_now(to, from);
  AlignedBuffer packed;
  std::byte* const bytes = packed.reserve(std::size_t(from.bytes()));
  kernel::pack(from, bytes);
  kernel::unpack(bytes, to);
}

bool Started::ended() const {
  return std::ranges::all_of(operations, [](const auto& operation) { return operation->ended(); });
}

bool Started::test() {
  if (ended()) return true;
  Runtime& runtime = member->core().runtime();
  if (runtime.is_forked()) runtime.check_alive();
  const auto guard = runtime.lock();
  runtime.poll();
  return ended();
}

void Started::rethrow() const {
  for (const auto& operation : operations) {
    operation->group.reset();
    operation->rethrow();
  }
}

Started start_call(const std::shared_ptr<Member>& called, const Call& call, const Terms& given, std::uint32_t site) {
  const auto member = call.reverse ? called->reversed() : called;
  if (call.is_sendrecv) return start_sendrecv(member, call, given, site);
  Terms terms = given;
  give_back(call, member->rank(), terms);
  GroupCore& core = member->core();
  GroupCore::Entry entry;
  entry.site = site;
  auto operation =
      begin_call(call, terms, [&](const CallTerms& made) { return core.start(entry, made, terms.timeout); });
  return {.member = member, .operations = {std::move(operation)}};
}

Started run_within_spin_budget(const std::shared_ptr<Member>& called, const Call& call, const Terms& terms,
                               std::uint32_t site) {
  const auto member = call.reverse ? called->reversed() : called;
  if (call.is_sendrecv) return run_sendrecv(member, call, terms, site);
  Started started = run_once(member, call, terms, nullptr, site);
  started.member = member;
  return started;
}

bool wait_for(Started& started, TimePoint limit) {
  if (started.operations.empty()) return true;
  Runtime& runtime = started.member->core().runtime();
  const record::Waiting waiting(runtime.parts().recorder.get(), started.operations.front()->recorded);
  const WithoutGil release;
  return runtime.wait([&] { return started.ended(); }, limit);
}

void interrupt(Started& started) {
  for (const auto& operation : started.operations) started.member->core().interrupt(*operation);
}

void complete(Started& started) {
  if (started.operations.empty()) return;
  note_site(started);
  try {
    wait_for(started, TimePoint::max());
    // A signal that came while the call ended is handled now, not after the call has returned: if its handler raises, the message of a
    // receive that has just ended is kept for the next one, as it is if the handler raises earlier.
    check_signals();
  } catch (...) {
    const WithoutGil release;
    interrupt(started);
    throw;
  }
  const WithoutGil release;
  started.rethrow();
}

void run_call(const std::shared_ptr<Member>& member, const Call& call, const Terms& terms) {
  Started started;
  const bool is_brief = terms.input.bytes() <= brief_bytes && terms.output.bytes() <= brief_bytes;
  if (is_brief && !call.reverse && !call.is_sendrecv) {
    const std::uint32_t site = recorded_site(*member);
    GilWhileBrief gil;
    started = run_once(member, call, terms, &gil, site);
  } else {
    const std::uint32_t site = recorded_site(*member);
    const WithoutGil release;
    started = run_within_spin_budget(member, call, terms, site);
  }
  complete(started);
}

void decline(const std::shared_ptr<Member>& called, const Call& call, const std::string& reason) {
  if (call.is_sendrecv || called->rank() < 0) return;  // messages are not numbered; non-members take no part in a call
  const WithoutGil release;
  try {
    GroupCore& core = (call.reverse ? called->reversed() : called)->core();
    const GroupCore::Entry entry(core, name_of(call));
    core.decline(reason);
  } catch (const Error&) {
    // A group that is broken or left has nobody to tell; the caller hears what it did wrong.
  }
}

std::string what_was_raised(const nb::python_error& raised) {
  const auto text = nb::cast<std::string>(nb::str(raised.value()));
  return fmt::format("{}: {}", nb::cast<std::string>(raised.type().attr("__name__")), text.substr(0, text.find('\n')));
}

void leave_behind(Started started, nb::object owners) {
  left_behind().push_back({.started = std::move(started), .owners = std::move(owners)});
}

void forget_ended(bool all) {
  auto& list = left_behind();
  if (list.empty()) return;
  std::list<LeftBehind> gone;  // what is let go of may run Python code, which may come back here
  for (auto it = list.begin(); it != list.end();) {
    const auto next = std::next(it);
    if (all || it->started.ended()) gone.splice(gone.end(), list, it);
    it = next;
  }
}

}  // namespace tutti::python
