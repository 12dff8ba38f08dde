// messages.cpp: messages under way on behalf of Python.
// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "bindings/gil_while_brief.hpp"
#include "bindings/running.hpp"
#include "bindings/site.hpp"
#include "group/core.hpp"
#include "group/operation.hpp"
#include "group/runtime.hpp"
#include "kernel/kernel.hpp"
#include "parallel/halo.hpp"

namespace tutti::python {
namespace {

void fill_with_zeros(const View& view) {
  if (view.is_contiguous()) {
    std::memset(view.data(), 0, std::size_t(view.bytes()));
  } else {
    AlignedBuffer zeros;
    std::byte* const bytes = zeros.reserve(std::size_t(view.bytes()));
    std::memset(bytes, 0, std::size_t(view.bytes()));
    kernel::unpack(bytes, view);
  }
}

/// Of a sendrecv: what arrives is like what is sent. Tags beyond those of programs are the library's own.
MessageTerms message_of(Verb verb, const View& data, int peer, const Call& call, const Terms& terms,
                        std::uint32_t site) {
  return {.verb = verb,
          .data = data,
          .peer = peer,
          .tag = call.tag,
          .timeout = terms.timeout,
          .differentiated = terms.differentiated,
          .is_exact = true,
          .is_internal = call.tag > tag_max,
          .site = site};
}

}  // namespace

Started start_message(const std::shared_ptr<Member>& member, const MessageTerms& message) {
  GroupCore& core = member->core();
  GroupCore::Entry entry;
  auto operation = core.start_message(&entry, message);
  if (!operation) operation = ended_message(message.verb, message.peer, message.tag, signature_of(message));
  return {.member = member, .operations = {std::move(operation)}};
}

void start_exchange(Started& started, const parallel::Slabs& slabs, Duration timeout) {
  const auto add = [&](Verb verb, const parallel::Slab& slab) {
    if (slab.peer == nobody) return;
    auto one = start_message(started.member, parallel::message_of(verb, slab, timeout));
    started.operations.push_back(std::move(one.operations[0]));
  };
  for (const parallel::Slab& slab : slabs.filled) add(Verb::recv, slab);
  for (const parallel::Slab& slab : slabs.sent) add(Verb::send, slab);
}

Started start_sendrecv(const std::shared_ptr<Member>& member, const Call& call, const Terms& terms,
                       std::uint32_t site) {
  Started started{.member = member};
  const auto add = [&](Verb verb, const View& view, int peer) {
    auto one = start_message(member, message_of(verb, view, peer, call, terms, site));
    started.operations.push_back(std::move(one.operations[0]));
  };
  if (call.source >= 0) {
    add(Verb::recv, terms.output, call.source);
  } else {
    fill_with_zeros(terms.output);
  }
  if (call.destination >= 0) add(Verb::send, terms.input, call.destination);
  return started;
}

Started run_sendrecv(const std::shared_ptr<Member>& member, const Call& call, const Terms& terms, std::uint32_t site) {
  const MessageTerms sent = message_of(Verb::send, terms.input, call.destination, call, terms, site);
  const MessageTerms received = message_of(Verb::recv, terms.output, call.source, call, terms, site);
  if (call.source < 0) fill_with_zeros(terms.output);
  GroupCore& core = member->core();
  const GroupCore::Entry entry(core, "sendrecv");
  auto left = core.run_exchange(call.destination < 0 ? nullptr : &sent, call.source < 0 ? nullptr : &received);
  Started started{.member = member};
  for (auto* operation : {&left.receiving, &left.sending}) {
    if (*operation) started.operations.push_back(std::move(*operation));
  }
  return started;
}

// No Entry: another thread may well answer meanwhile.
Received run_message(const std::shared_ptr<Member>& member, MessageTerms message) {
  Started started{.member = member};
  message.site = recorded_site(*member);
  {
    GilWhileBrief gil;
    if (message.data.bytes() > brief_bytes || message.found != nullptr) gil.before_blocking();
    message.hook = &gil;
    Received received;
    auto operation = member->core().run_message(nullptr, message, received);
    if (!operation) return received;
    started.operations.push_back(std::move(operation));
  }
  complete(started);
  return started.operations[0]->received();
}

}  // namespace tutti::python
