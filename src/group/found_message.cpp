// found_message.cpp: a message that a probe has found.
// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <tutti/error.hpp>
#include <tutti/messages.hpp>
#include <tutti/work.hpp>

#include "group/core.hpp"
#include "group/operation.hpp"
#include "group/runtime.hpp"
#include "messages/message_form.hpp"

namespace tutti {
namespace {

const Envelope& envelope_of(const std::shared_ptr<Operation>& probe) {
  if (!probe) throw InvalidArgument("this Message is empty: it was received before, or iprobe() found none");
  return probe->transfer.envelope;
}

}  // namespace

Message& Message::operator=(Message&& other) noexcept {
  const Message old(std::move(*this));
  group_ = std::move(other.group_);
  probe_ = std::move(other.probe_);
  return *this;
}

Message::~Message() {
  if (probe_) group_->release_message(*probe_);
}

int Message::source() const {
  static_cast<void>(envelope_of(probe_));
  return probe_->peer;
}
std::uint32_t Message::tag() const { return envelope_of(probe_).tag; }
std::int64_t Message::count() const { return envelope_of(probe_).signature.count; }
DType Message::dtype() const { return envelope_of(probe_).signature.dtype; }
std::uint8_t Message::kind() const { return messages::kind_in(envelope_of(probe_)); }

std::vector<std::int64_t> Message::shape() const {
  const MessageShape shape = messages::shape_in(envelope_of(probe_), probe_->lengths);
  return {shape.lengths.begin(), shape.lengths.begin() + shape.axes};
}

Received Message::recv(View out, TimeLimit timeout) {
  return receive({.verb = Verb::recv, .data = out, .peer = source(), .tag = tag(), .timeout = timeout});
}

Received Message::recv_by(const Allocate& allocate, Duration timeout) {
  return receive({.verb = Verb::recv, .peer = source(), .tag = tag(), .timeout = timeout, .allocate = &allocate});
}

Received Message::receive(MessageTerms terms) {
  terms.found = probe_.get();
  GroupCore::Entry entry;
  Received received;
  const auto operation = group_->run_message(&entry, terms, received);
  probe_ = nullptr;  // the message is the receive's
  if (!operation) return received;
  Work(operation).wait();
  return operation->received();
}

}  // namespace tutti
