// self_messages.cpp: messages of a rank to itself.
// SPDX-License-Identifier: Apache-2.0
#include "messages/self_messages.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "messages/stage.hpp"

namespace tutti::messages {

namespace {

std::uint64_t id_of(const Transfer& send) { return reinterpret_cast<std::uintptr_t>(&send); }

}  // namespace

void SelfMessages::send(Transfer& transfer) {
  transfer.state = Transfer::State::pending;
  set_stage(transfer, Stage::to_self);
  sends_.push_back(&transfer);
}

void SelfMessages::cancel(Transfer& transfer) {
  if (stage_of(transfer) == Stage::to_self) {
    std::ranges::replace(sends_, &transfer, static_cast<Transfer*>(nullptr));
  } else if (UnexpectedMessage* const found = find_reserved(queue_, rank_, id_of(transfer))) {
    queue_.lose(*found, fmt::format("rank {}: this rank took its message to itself back", rank_),
                Transfer::Refusal::taken_back);
    queue_.recycle(*found);
  } else {
    queue_.recycle(*queue_.forget_announced(rank_, id_of(transfer)));
  }
}

bool SelfMessages::withdraw(Transfer& transfer) {
  if (stage_of(transfer) == Stage::kept_for_self && find_reserved(queue_, rank_, id_of(transfer)) != nullptr)
    return false;
  cancel(transfer);
  return true;
}

// The listener may send to this rank again while it is told.
void SelfMessages::deliver(TransportListener& listener) {
  for (std::size_t i = 0; i < sends_.size(); ++i) {
    Transfer* const send = std::exchange(sends_[i], nullptr);
    if (send == nullptr) continue;
    set_stage(*send, Stage::kept_for_self);
    if (deliver(*send, listener)) finish(*send);
  }
  sends_.clear();
  for (const std::vector<std::byte>& message : std::exchange(controls_, {})) listener.control(rank_, message);
}

bool SelfMessages::refuse(Transfer& send) const {
  if (!refuses_messages_ || send.envelope.channel == collective_channel) return false;
  send.refusal = Transfer::Refusal::receiver_left;
  fail(send, "");
  return true;
}

// True if the message is used up; otherwise it waits for its receive.
bool SelfMessages::deliver(Transfer& send, TransportListener& listener) {
  const Envelope& envelope = send.envelope;
  if (refuse(send)) return false;
  if (listener.arrived(rank_, envelope) == TransportListener::Verdict::drop) return true;
  const MessageShape shape = send.shape != nullptr ? *send.shape : MessageShape{};
  const MatchingQueue::Match match = queue_.match(rank_, envelope, shape);
  if (match.fit == MatchingQueue::Fit::taken) {
    copy_bytes(match.receive->to, send.from, envelope.bytes);
    finish(*match.receive);
  }
  if (match.fit == MatchingQueue::Fit::taken || match.fit == MatchingQueue::Fit::refused) return true;
  UnexpectedMessage& message = queue_.keep(rank_, envelope, shape, match.receive);
  const std::int64_t cost = credit_cost(envelope.bytes);
  if (envelope.bytes > eager_bytes_max_ || cost > credit_bytes_) {
    message.announced = true;
    message.id = id_of(send);
    return false;
  }
  credit_bytes_ -= cost;
  copy_bytes(queue_.make_room(message), send.from, envelope.bytes);
  return true;
}

void SelfMessages::take(UnexpectedMessage& message, Transfer* receive) {
  auto* const send = message.announced ? reinterpret_cast<Transfer*>(static_cast<std::uintptr_t>(message.id)) : nullptr;
  if (receive != nullptr) {
    copy_bytes(receive->to, send != nullptr ? send->from : message.payload.get(), receive->envelope.bytes);
    finish(*receive);
  }
  if (send != nullptr) {
    if (receive != nullptr || !refuse(*send)) finish(*send);
  } else {
    credit_bytes_ += credit_cost(message.envelope.bytes);
  }
  queue_.recycle(message);
}

}  // namespace tutti::messages
