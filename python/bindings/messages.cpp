// messages.cpp: messages under way on behalf of Python.
// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "bindings/gil_while_brief.hpp"
#include "bindings/running.hpp"
#include "group/core.hpp"
#include "group/operation.hpp"
#include "group/runtime.hpp"
#include "kernel/kernel.hpp"

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

GroupCore::Message message_of(Direction direction, const View& data, int peer, std::uint32_t tag, Duration timeout,
                              bool differentiated) {
  return {.verb = direction == Direction::send ? Verb::send : Verb::recv,
          .data = data,
          .peer = peer,
          .tag = tag,
          .timeout = timeout,
          .differentiated = differentiated};
}

}  // namespace

Started start_message(const std::shared_ptr<Member>& member, Direction direction, const View& data, int peer,
                      std::uint32_t tag, Duration timeout, bool differentiated) {
  const GroupCore::Message message = message_of(direction, data, peer, tag, timeout, differentiated);
  GroupCore& core = member->core();
  const GroupCore::Entry entry(core, name_of(message.verb));
  auto operation = core.start_message(message);
  core.runtime().hand_to_progress_thread(*operation);
  return {.member = member, .operations = {std::move(operation)}};
}

Started start_sendrecv(const std::shared_ptr<Member>& member, const Call& call, const Terms& terms) {
  Started started{.member = member};
  const auto add = [&](Direction direction, const View& view, int peer) {
    auto one = start_message(member, direction, view, peer, call.tag, terms.timeout, terms.differentiated);
    started.operations.push_back(std::move(one.operations[0]));
  };
  if (call.source >= 0) {
    add(Direction::receive, terms.output, call.source);
  } else {
    fill_with_zeros(terms.output);
  }
  if (call.destination >= 0) add(Direction::send, terms.input, call.destination);
  return started;
}

Started run_sendrecv(const std::shared_ptr<Member>& member, const Call& call, const Terms& terms) {
  const auto message = [&](Direction direction, const View& data, int peer) {
    return message_of(direction, data, peer, call.tag, terms.timeout, terms.differentiated);
  };
  const GroupCore::Message sent = message(Direction::send, terms.input, call.destination);
  const GroupCore::Message received = message(Direction::receive, terms.output, call.source);
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
void run_member_message(const std::shared_ptr<Member>& member, Direction direction, const View& data, int peer,
                        std::uint32_t tag, Duration timeout) {
  Started started{.member = member};
  {
    GilWhileBrief gil;
    if (data.bytes() > brief_bytes) gil.before_blocking();
    GroupCore::Message message = message_of(direction, data, peer, tag, timeout, false);
    message.hook = &gil;
    int source = peer;
    auto operation = member->core().run_message(nullptr, message, source);
    if (!operation) return;
    started.operations.push_back(std::move(operation));
  }
  complete(started);
}

}  // namespace tutti::python
