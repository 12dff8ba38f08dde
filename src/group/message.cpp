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
#include "messages/matching_queue.hpp"
#include "messages/message_form.hpp"

namespace tutti {
namespace {

/// Whether the head of a message that came agrees with its length: its count is what the program is told.
bool is_sound(const Envelope& envelope) {
  const Signature& sent = envelope.signature;
  return static_cast<int>(sent.dtype) < dtype_count && sent.count >= 0 &&
         envelope.bytes == sent.count * static_cast<std::int64_t>(size_of(sent.dtype));
}

/// Whether it is the one that had to come, where messages have numbers.
bool has_number(const Transfer& transfer, std::uint8_t expected) {
  const std::uint8_t sent = messages::kind_in(transfer.envelope);
  return expected == 0 || sent == 0 || sent == expected;
}

/// Over, and nothing about it is to be looked at more closely.
bool is_over(const Transfer& transfer, const MessageTerms& message) {
  if (transfer.state != Transfer::State::done) return false;
  if (message.verb == Verb::send) return true;
  if (message.probes || !message.data.is_contiguous()) return false;
  const Signature& sent = transfer.envelope.signature;
  return sent.flags == signature_of(message).flags && is_sound(transfer.envelope) &&
         (!message.is_exact || sent.count == message.data.count()) &&
         (!message.is_internal || has_number(transfer, message.kind));
}

/// One with which nothing can be wrong, as most are.
bool is_plain(const MessageTerms& message, int size) {
  const View& data = message.data;
  return message.peer >= 0 && message.peer < size && message.tag <= tag_max && data.axes() == 1 &&
         is_dtype(data.dtype()) && data.is_contiguous() && data.device().kind == Device::Kind::cpu && data.present() &&
         (message.verb == Verb::send || !data.is_read_only()) && message.found == nullptr;
}

/// The first elements of an array of any strides, from packed ones.
void unpack_first(const std::byte* packed, const View& to, std::int64_t count) {
  if (count == to.count()) return kernel::unpack(packed, to);
  if (count == 0) return;
  const std::int64_t row = to.count() / to.shape()[0];
  const std::int64_t whole = count / row;
  if (whole > 0) kernel::unpack(packed, to.slice(0, 0, whole));
  if (count == whole * row) return;
  const View next = to.slice(0, whole, 1);  // an array of one axis less
  unpack_first(packed + whole * row * static_cast<std::int64_t>(size_of(to.dtype())),
               View(next.data(), to.dtype(), to.shape().subspan(1), to.strides().subspan(1)), count - whole * row);
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
  if (is_plain(message, facts_.size)) [[likely]]
    return;
  check_message(message.verb, message.data,
                {.peer = message.peer,
                 .size = facts_.size,
                 .tag = message.tag,
                 .has_data = message.allocate == nullptr && !message.probes,
                 .is_internal = message.is_internal});
  if (message.found != nullptr && message.found->transfer.state != Transfer::State::done) {
    throw Aborted(fmt::format("rank {} of {}: the message that probe() found can no longer be received: {}",
                              facts_.rank, facts_.size, message.found->transfer.error));
  }
  if (message.data.device().kind != Device::Kind::cpu) {
    throw Unsupported(
        fmt::format("{}: the array is not in the CPU's memory; copy it there first", name_of(message.verb)));
  }
}

void GroupMessages::write_down(Operation& operation, const MessageTerms& message) const {
  operation.request.verb = message.verb;
  operation.is_packed = !message.data.is_contiguous();
  if (operation.is_packed) operation.request.output = message.data;
  operation.request.signature = signature_of(message);
  operation.peer = message.peer;
  operation.from_anyone = message.peer == any_source;
  operation.takes_any = message.allocate != nullptr || message.probes;
  operation.is_exact = message.is_exact;
  operation.number = message.is_internal ? message.kind : 0;
  operation.transport = &runtime_->transport();
}

std::uint64_t GroupMessages::begin_record(const MessageTerms& message) const {
  record::Recorder* const recorder = records_.recorder();
  if (recorder == nullptr || message.is_internal || message.probes) return 0;
  return recorder->begin(records_.shape_of_message(message.verb, message.data, message.peer, message.tag), 0,
                         message.site);
}

void GroupMessages::end_record(std::uint64_t number, const MessageTerms& message, int source,
                               HasWaited has_waited) const {
  record::Recorder& recorder = *records_.recorder();
  if (message.peer < 0) records_.note_peer(number, source);
  if (has_waited == HasWaited::no) return recorder.end_at_once(number);
  recorder.end_waited(number, records_.shape_of_message(message.verb, message.data, message.peer, message.tag));
}

// Every message begins here, in an operation that is in no list as long as nobody need wait for it.
GroupMessages::Begun GroupMessages::begin(const MessageTerms& message, int spins) {
  if (!next_) next_ = running_.take();
  Transfer& transfer = next_->transfer;
  const Begun begun{.transfer = transfer, .record = begin_record(message)};
  auto* memory = static_cast<std::byte*>(message.data.data());
  if (!message.data.is_contiguous()) [[unlikely]] {
    memory = next_->packed.reserve(static_cast<std::size_t>(message.data.bytes()));
    if (message.verb == Verb::send) kernel::pack(message.data, memory);
  }
  address(*next_, message, memory);
  Transport& transport = runtime_->transport();
  if (message.found != nullptr) {
    transport.accept(message.found->transfer, transfer);
  } else if (message.verb == Verb::send) {
    transport.send(transfer);
  } else if (spins == 0 || message.probes || !message.data.is_contiguous() || !transport.try_recv(transfer, spins)) {
    transport.recv(transfer);
  }
  return begun;
}

std::shared_ptr<Operation> GroupMessages::launch(const MessageTerms& message) {
  const Begun begun = begin(message, 0);
  if (!is_over(begun.transfer, message)) return follow(message, begun.record);
  const int source = source_of(begun.transfer, message);
  if (begun.record != 0) end_record(begun.record, message, source, HasWaited::no);
  if (message.verb == Verb::send) return nullptr;
  auto operation = std::exchange(next_, nullptr);  // to tell what came
  operation->request.verb = message.verb;
  operation->request.signature = begun.transfer.envelope.signature;
  operation->peer = source;
  operation->end(nullptr);
  return operation;
}

int GroupMessages::source_of(const Transfer& transfer, const MessageTerms& message) const {
  return message.peer >= 0 ? message.peer : facts_.rank_of(transfer.peer);
}

// One that the transport has: it says so itself when it is over, for nobody asks all that are under way.
std::shared_ptr<Operation> GroupMessages::follow(const MessageTerms& message, std::uint64_t record) {
  auto operation = std::exchange(next_, nullptr);
  write_down(*operation, message);
  running_.note_record(*operation, record,
                       records_.shape_of_message(message.verb, message.data, message.peer, message.tag));
  running_.track(operation, group_.shared_from_this(), message.timeout);
  if (operation->transfer.state == Transfer::State::pending) {
    operation->watch_transfer();
  } else {
    advance(*operation);
  }
  return operation;
}

void GroupMessages::address(Operation& operation, const MessageTerms& message, std::byte* memory) const {
  Transfer& transfer = operation.transfer;
  const std::int64_t count = message.data.count();
  transfer.envelope = {.group = facts_.id,
                       .epoch = facts_.epoch,
                       .tag = message.tag,
                       .channel = message.is_internal ? messages::internal_channel : messages::point_to_point_channel,
                       .signature = signature_of(message),
                       .bytes = count * static_cast<std::int64_t>(size_of(message.data.dtype()))};
  transfer.peer = message.peer == any_source ? any_peer : facts_.world_of[static_cast<std::size_t>(message.peer)];
  transfer.shape = &operation.lengths;
  transfer.room = nullptr;
  transfer.probes = message.probes;
  if (message.verb == Verb::send) {
    messages::write_form(transfer.envelope, message.data.shape(), message.kind, operation.lengths);
    transfer.from = memory;
    return;
  }
  transfer.to = memory;
  if (message.allocate == nullptr) return;
  operation.request.allocate = *message.allocate;
  transfer.room = &operation.room();
}

// The transport keeps messages in order, tracked or not.
std::shared_ptr<Operation> GroupMessages::run(const MessageTerms& message, Received& received, Waiting waiting) {
  const bool waits = all_are_local_ && waiting == Waiting::within_spin_budget;
  const bool oversubscribed = runtime_->parts().oversubscribed;
  const Begun begun = begin(message, !waits ? 0 : oversubscribed ? 1 : waiting::spins_at_once);
  bool has_polled = false;
  if (begun.transfer.state == Transfer::State::pending && waits) {
    has_polled = true;
    Passing passing{runtime_->transport(), begun.transfer, oversubscribed ? 1 : waiting::spins_for_a_message};
    static_cast<void>(waiting::poll_within_budget(
        passing, {.clock = runtime_->clock(), .oversubscribed = oversubscribed, .hook = message.hook}));
  }
  if (!is_over(begun.transfer, message)) return follow(message, begun.record);
  received = {.source = source_of(begun.transfer, message),
              .tag = begun.transfer.envelope.tag,
              .count = begun.transfer.envelope.signature.count};
  next_->request.allocate = nullptr;
  if (begun.record != 0)
    end_record(begun.record, message, received.source, has_polled ? HasWaited::yes : HasWaited::no);
  return nullptr;
}

void GroupMessages::advance() {
  while (!running_.is_stopped()) {
    Operation* const operation = running_.messages().take_news();
    if (operation == nullptr) return;
    advance(*operation);
  }
}

void GroupMessages::advance(Operation& operation) {
  Transfer& transfer = operation.transfer;
  if (transfer.state == Transfer::State::pending || !operation.failing.empty()) return;
  if (transfer.state == Transfer::State::failed) {
    if (transfer.refusal != Transfer::Refusal::none) return refuse_received(operation);
    return running_.mark_failing(operation, {.reason = transfer.error, .world_peers = {transfer.peer}});
  }
  if (operation.request.verb == Verb::recv) {
    finish_receive(operation);
  } else {
    running_.end(operation, nullptr);
  }
}

void GroupMessages::fail_message(Operation& operation, std::string_view why) {
  running_.end(operation, std::make_exception_ptr(Mismatch(fmt::format("rank {} of {}: {}: {}", facts_.rank,
                                                                       facts_.size, names_.call(operation), why))));
}

// A message that its receive does not take is gone, and nothing else: the group goes on.
void GroupMessages::refuse_received(Operation& operation) {
  const Transfer& transfer = operation.transfer;
  const Signature& sent = transfer.envelope.signature;
  const std::string what = fmt::format("{} × {}", name_of(sent.dtype), sent.count);
  using Refusal = Transfer::Refusal;
  if (transfer.refusal == Refusal::asked_back || transfer.refusal == Refusal::taken_back) {
    const std::string why = transfer.error.empty() ? "it was cancelled" : transfer.error;
    return running_.end(
        operation, std::make_exception_ptr(Aborted(
                       fmt::format("rank {} of {}: {}: {}", facts_.rank, facts_.size, names_.call(operation), why))));
  }
  if (transfer.refusal == Refusal::receiver_left) {
    return running_.end(operation, names_.left_without(operation, transfer.peer));
  }
  operation.peer = facts_.rank_of(transfer.peer);
  switch (transfer.refusal) {
    case Refusal::too_long:
      return fail_message(operation,
                          fmt::format("rank {} sent {} with tag {}, for which there is too little room; make "
                                      "room for it, or receive without an array to get one as it was sent",
                                      operation.peer, what, transfer.envelope.tag));
    case Refusal::other_dtype:
      return fail_message(operation,
                          fmt::format("rank {} sent {} with tag {}; receive into an array of {}, or without an array "
                                      "to get one as it was sent",
                                      operation.peer, what, transfer.envelope.tag, name_of(sent.dtype)));
    default:
      return fail_message(operation, fmt::format("rank {} sent {} with tag {}, which could not be taken: {}",
                                                 operation.peer, what, transfer.envelope.tag, transfer.error));
  }
}

void GroupMessages::finish_receive(Operation& operation) {
  const Transfer& transfer = operation.transfer;
  operation.peer = facts_.rank_of(transfer.peer);
  if (operation.record != 0 && operation.from_anyone) records_.note_peer(operation.record, operation.peer);
  const Signature &sent = transfer.envelope.signature, &expected = operation.request.signature;
  if (transfer.probes) return running_.end(operation, nullptr);
  if (!has_number(transfer, operation.number)) {
    failure_.propose({.kind = control::Cause::Kind::mismatch,
                      .culprits = {},
                      .sequence = 0,
                      .text = fmt::format(
                          "rank {} and rank {} are not in the same exchange of a mesh's margins or parts: one of them "
                          "refused, or gave up, an earlier one that the other has made",
                          operation.peer, facts_.rank)});
    return;
  }
  if (!is_sound(transfer.envelope) || (operation.is_exact && sent.count != expected.count)) {
    return fail_message(operation, fmt::format("rank {} sent {} × {} with tag {} ({} bytes), but {} × {} has to come",
                                               operation.peer, name_of(sent.dtype), sent.count, transfer.envelope.tag,
                                               transfer.envelope.bytes, name_of(expected.dtype), expected.count));
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
  if (operation.is_packed) unpack_first(operation.packed.data(), operation.request.output, sent.count);
  running_.end(operation, nullptr);
}

std::shared_ptr<Operation> GroupMessages::look(const MessageTerms& probe) {
  auto operation = running_.take();
  write_down(*operation, probe);
  address(*operation, probe, nullptr);
  if (!runtime_->transport().reserve(operation->transfer)) return nullptr;
  operation->peer = facts_.rank_of(operation->transfer.peer);
  operation->end(nullptr);
  return operation;
}

bool GroupMessages::cancel(Operation& operation) {
  if (operation.ended() || operation.transport == nullptr || running_.is_stopped()) return false;
  if (!operation.transport->withdraw(operation.transfer)) return false;
  running_.end(operation,
               std::make_exception_ptr(Aborted(fmt::format("rank {} of {}: {}: it was cancelled", facts_.rank,
                                                           facts_.size, names_.call(operation)))));
  return true;
}

}  // namespace tutti
