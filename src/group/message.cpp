// message.cpp: point-to-point calls of a group.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <tutti/error.hpp>

#include "group/check.hpp"
#include "group/core.hpp"
#include "group/runtime.hpp"
#include "kernel/kernel.hpp"

namespace tutti {
namespace {

constexpr std::uint32_t message_channel = 1;

}  // namespace

Signature GroupCore::signature_of(const Message& message) {
  return {.verb = Verb::send, .dtype = message.data.dtype(), .flags = flags_of(message), .count = message.data.count()};
}

void GroupCore::check_message_here(const Message& message) const {
  check_usable();
  check_message(message.verb, message.data,
                {.peer = message.peer, .size = facts_.size, .any_source_allowed = message.verb == Verb::recv});
  if (message.data.device().kind != Device::Kind::cpu) {
    throw Unsupported(
        fmt::format("{}: the array is not in the CPU's memory; copy it there first", name_of(message.verb)));
  }
}

std::shared_ptr<Operation> GroupCore::start_message(const Message& message) {
  const auto guard = runtime_->lock();
  check_message_here(message);
  return launch_message(message);
}

void GroupCore::write_down(Operation& operation, const Message& message) const {
  operation.request.verb = message.verb;
  (message.verb == Verb::send ? operation.request.input : operation.request.output) = message.data;
  operation.request.signature = signature_of(message);
  operation.peer = message.peer;
  operation.from_anyone = message.peer == any_source;
  operation.transport = &runtime_->transport();
}

std::shared_ptr<Operation> GroupCore::launch_message(const Message& message) {
  auto operation = take_operation();
  write_down(*operation, message);
  auto* memory = static_cast<std::byte*>(message.data.data());
  if (!message.data.is_contiguous()) {
    memory = operation->packed.reserve(static_cast<std::size_t>(message.data.bytes()));
    if (message.verb == Verb::send) kernel::pack(message.data, memory);
  }
  address(operation->transfer, message, memory);
  hand_over(operation->transfer, message.verb);
  return follow(std::move(operation), message.timeout);
}

// One that the transport has: it says so itself when it is over, for nobody asks all that are under way.
std::shared_ptr<Operation> GroupCore::follow(std::shared_ptr<Operation> operation, Duration timeout) {
  track(operation, timeout);
  if (operation->transfer.state == Transfer::State::pending) {
    operation->watch_transfer();
  } else {
    advance_message(*operation);
  }
  return operation;
}

void GroupCore::address(Transfer& transfer, const Message& message, std::byte* memory) const {
  const std::int64_t count = message.data.count();
  transfer.envelope = {.group = facts_.id,
                       .epoch = facts_.epoch,
                       .tag = message.tag,
                       .channel = message_channel,
                       .signature = signature_of(message),
                       .bytes = count * static_cast<std::int64_t>(size_of(message.data.dtype()))};
  transfer.peer = message.peer == any_source ? any_peer : facts_.world_of[static_cast<std::size_t>(message.peer)];
  const bool is_send = message.verb == Verb::send;
  transfer.from = is_send ? memory : nullptr;
  transfer.to = is_send ? nullptr : memory;
}

void GroupCore::hand_over(Transfer& transfer, Verb verb) {
  verb == Verb::send ? runtime_->transport().send(transfer) : runtime_->transport().recv(transfer);
}

void GroupCore::advance_message(Operation& operation) {
  Transfer& transfer = operation.transfer;
  if (transfer.state == Transfer::State::pending || !operation.failing.empty()) return;
  if (transfer.state == Transfer::State::failed) {
    return mark_failing(
        operation, transfer.error, transfer.peer,
        operation.request.verb == Verb::recv && transfer.envelope.bytes != operation.request.output.bytes());
  }
  if (operation.request.verb == Verb::recv) {
    finish_receive(operation);
  } else {
    end(operation, nullptr);
  }
}

void GroupCore::finish_receive(Operation& operation) {
  const Transfer& transfer = operation.transfer;
  operation.peer = rank_of(transfer.peer);
  const Signature &sent = transfer.envelope.signature, &expected = operation.request.signature;
  if (sent.dtype != expected.dtype || sent.count != expected.count) {
    request_abort({.kind = control::Cause::Kind::mismatch,
                   .culprits = {},
                   .sequence = 0,
                   .text = fmt::format("rank {} sent {} × {} with tag {}, but rank {} receives {} × {}", operation.peer,
                                       name_of(sent.dtype), sent.count, transfer.envelope.tag, facts_.rank,
                                       name_of(expected.dtype), expected.count)});
    return;
  }
  if (sent.flags != expected.flags) {
    const bool sender_is = (sent.flags & Signature::differentiated) != 0;
    request_abort(
        {.kind = control::Cause::Kind::mismatch,
         .culprits = {},
         .sequence = 0,
         .text = fmt::format("what rank {} sends to rank {} with tag {} takes part in differentiation {} only; "
                             "both have to, because the gradient comes back the same way",
                             operation.peer, facts_.rank, transfer.envelope.tag,
                             sender_is ? "where it is sent" : "where it is received")});
    return;
  }
  const View& data = operation.request.output;
  if (!data.is_contiguous()) kernel::unpack(operation.packed.data(), data);
  end(operation, nullptr);
}

}  // namespace tutti
