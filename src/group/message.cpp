// message.cpp: point-to-point calls of a group.
// SPDX-License-Identifier: Apache-2.0
#include "group/message.hpp"

#include <fmt/format.h>

#include <utility>

#include <tutti/error.hpp>

#include "group/check.hpp"
#include "group/core.hpp"
#include "group/runtime.hpp"
#include "kernel/kernel.hpp"

namespace tutti {
namespace {

constexpr std::uint32_t message_channel = 1;

std::uint8_t flags_of(const MessageTerms& message) {
  return message.differentiated ? Signature::differentiated : std::uint8_t{0};
}

Signature signature_of(const MessageTerms& message) {
  return {.verb = Verb::send, .dtype = message.data.dtype(), .flags = flags_of(message), .count = message.data.count()};
}

bool is_over(const Transfer& transfer, const MessageTerms& message) {
  if (transfer.state != Transfer::State::done) return false;
  const Signature& sent = transfer.envelope.signature;  // of a send: its own
  return sent.dtype == message.data.dtype() && sent.count == message.data.count() && sent.flags == flags_of(message);
}

/// A message under way.
struct Passing {
  Transport& transport;
  const Transfer& awaited;
  int spins;

  bool poll() {
    for (int i = 0; i < spins && awaited.state == Transfer::State::pending; ++i) transport.poll();
    return awaited.state != Transfer::State::pending;
  }
};

}  // namespace

void GroupMessages::check(const MessageTerms& message) const {
  failure_.check_usable();
  check_message(message.verb, message.data,
                {.peer = message.peer, .size = facts_.size, .any_source_allowed = message.verb == Verb::recv});
  if (message.data.device().kind != Device::Kind::cpu) {
    throw Unsupported(
        fmt::format("{}: the array is not in the CPU's memory; copy it there first", name_of(message.verb)));
  }
}

void GroupMessages::write_down(Operation& operation, const MessageTerms& message) const {
  operation.request.verb = message.verb;
  (message.verb == Verb::send ? operation.request.input : operation.request.output) = message.data;
  operation.request.signature = signature_of(message);
  operation.peer = message.peer;
  operation.from_anyone = message.peer == any_source;
  operation.transport = &runtime_->transport();
}

std::shared_ptr<Operation> GroupMessages::launch(const MessageTerms& message) {
  auto operation = running_.take();
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
std::shared_ptr<Operation> GroupMessages::follow(std::shared_ptr<Operation> operation, Duration timeout) {
  running_.track(operation, group_.shared_from_this(), timeout);
  if (operation->transfer.state == Transfer::State::pending) {
    operation->watch_transfer();
  } else {
    advance(*operation);
  }
  return operation;
}

void GroupMessages::address(Transfer& transfer, const MessageTerms& message, std::byte* memory) const {
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

void GroupMessages::hand_over(Transfer& transfer, Verb verb) {
  verb == Verb::send ? runtime_->transport().send(transfer) : runtime_->transport().recv(transfer);
}

// The transport keeps messages in order, tracked or not.
std::shared_ptr<Operation> GroupMessages::try_message(const MessageTerms& message, int& source, Waiting waiting) {
  if (!all_are_local_ || running_.is_stopped() || !message.data.is_contiguous()) return launch(message);
  if (!message_) message_ = running_.take();
  Transfer& transfer = message_->transfer;
  address(transfer, message, static_cast<std::byte*>(message.data.data()));
  const bool oversubscribed = runtime_->parts().oversubscribed;
  const bool waits = waiting == Waiting::within_spin_budget;
  if (message.verb == Verb::send || !waits ||
      !runtime_->transport().try_recv(transfer, oversubscribed ? 1 : waiting::spins_at_once)) {
    hand_over(transfer, message.verb);
    if (transfer.state == Transfer::State::pending && waits) {
      Passing passing{runtime_->transport(), transfer, oversubscribed ? 1 : waiting::spins_for_a_message};
      static_cast<void>(waiting::poll_within_budget(
          passing, {.clock = runtime_->clock(), .oversubscribed = oversubscribed, .hook = message.hook}));
    }
  }
  if (is_over(transfer, message)) [[likely]] {
    source = message.peer == any_source ? facts_.rank_of(transfer.peer) : message.peer;
    return nullptr;
  }
  auto operation = std::exchange(message_, nullptr);
  write_down(*operation, message);
  return follow(std::move(operation), message.timeout);
}

void GroupMessages::advance() {
  if (!running_.messages().has_news()) return;
  running_.messages().take_news(news_);
  for (const auto& operation : news_) {
    if (!operation->ended() && !running_.is_stopped()) advance(*operation);
  }
  news_.clear();
}

void GroupMessages::advance(Operation& operation) {
  Transfer& transfer = operation.transfer;
  if (transfer.state == Transfer::State::pending || !operation.failing.empty()) return;
  if (transfer.state == Transfer::State::failed) {
    const bool is_receive = operation.request.verb == Verb::recv;
    return running_.mark_failing(
        operation, {.reason = transfer.error,
                    .world_peer = transfer.peer,
                    .does_not_fit = is_receive && transfer.envelope.bytes != operation.request.output.bytes()});
  }
  if (operation.request.verb == Verb::recv) {
    finish_receive(operation);
  } else {
    running_.end(operation, nullptr);
  }
}

void GroupMessages::finish_receive(Operation& operation) {
  const Transfer& transfer = operation.transfer;
  operation.peer = facts_.rank_of(transfer.peer);
  const Signature &sent = transfer.envelope.signature, &expected = operation.request.signature;
  if (sent.dtype != expected.dtype || sent.count != expected.count) {
    failure_.propose({.kind = control::Cause::Kind::mismatch,
                      .culprits = {},
                      .sequence = 0,
                      .text = fmt::format("rank {} sent {} × {} with tag {}, but rank {} receives {} × {}",
                                          operation.peer, name_of(sent.dtype), sent.count, transfer.envelope.tag,
                                          facts_.rank, name_of(expected.dtype), expected.count)});
    return;
  }
  if (sent.flags != expected.flags) {
    const bool sender_is = (sent.flags & Signature::differentiated) != 0;
    failure_.propose(
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
  running_.end(operation, nullptr);
}

}  // namespace tutti
