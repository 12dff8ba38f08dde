// matching_queue.cpp: matching messages with receives.
// SPDX-License-Identifier: Apache-2.0
#include "messages/matching_queue.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "messages/message_form.hpp"
#include "messages/stage.hpp"

namespace tutti::messages {

namespace {

constexpr std::int64_t pooled_bytes_max = 4 << 20;

bool takes_every_tag(const Transfer& receive) {
  return receive.envelope.tag == every_tag && receive.envelope.channel != collective_channel;
}

MatchingQueue::Fit refuse(Transfer& receive, Transfer::Refusal refusal, std::string error) {
  receive.refusal = refusal;
  fail(receive, std::move(error));
  return MatchingQueue::Fit::refused;
}

}  // namespace

MatchingQueue::~MatchingQueue() = default;

MatchingQueue::Fit MatchingQueue::settle(Transfer& receive, int peer, const Envelope& envelope,
                                         const MessageShape* shape) const {
  const std::int64_t room = receive.envelope.bytes;
  const DType dtype = receive.envelope.signature.dtype;
  receive.peer = peer;
  receive.envelope = envelope;
  if (envelope.channel == collective_channel) [[likely]] {
    if (envelope.bytes == room) [[likely]]
      return Fit::taken;
    fail(receive,
         fmt::format("rank {}: the message from rank {} ({}, message {}) has {} bytes, but the receive has room for {} "
                     "bytes; check that all ranks call with the same counts",
                     rank_, peer, describe(envelope.signature), envelope.tag, envelope.bytes, room));
    return Fit::refused;
  }
  if (receive.shape != nullptr && needs_shape(envelope) && shape != nullptr) *receive.shape = *shape;
  if (receive.probes) return Fit::reserved;
  if (receive.room != nullptr) {
    try {
      receive.to = receive.room->room_for(receive);
      return Fit::taken;
    } catch (const std::exception& error) {
      return refuse(receive, Transfer::Refusal::no_memory, error.what());
    }
  }
  if (envelope.signature.dtype != dtype) return refuse(receive, Transfer::Refusal::other_dtype, "");
  if (envelope.bytes > room) return refuse(receive, Transfer::Refusal::too_long, "");
  return Fit::taken;
}

Transfer* MatchingQueue::find_posted(std::uint64_t key, int peer, const Envelope& envelope) const {
  Transfer* const receive = posted_.find(key, peer, envelope);
  if (every_tag_count_ == 0 || envelope.channel == collective_channel) [[likely]]
    return receive;
  Envelope any = envelope;
  any.tag = every_tag;
  Transfer* const other = posted_.find(key_of(peer, any), peer, envelope);
  if (receive == nullptr || other == nullptr) return receive != nullptr ? receive : other;
  return receive->order < other->order ? receive : other;
}

UnexpectedMessage* MatchingQueue::find_unexpected(std::uint64_t key, const Transfer& receive) const {
  if (unexpected_.count() == 0) return nullptr;
  if (takes_every_tag(receive)) return unexpected_.find_any_tag(receive.peer, receive.envelope);
  return unexpected_.find(key, receive.peer, receive.envelope);
}

void MatchingQueue::unlink(std::uint64_t key, Transfer& receive) {
  posted_.remove(key, receive);
  if (takes_every_tag(receive)) --every_tag_count_;
}

MatchingQueue::Match MatchingQueue::match(int peer, const Envelope& envelope, const MessageShape& shape) {
  if (posted_.count() == 0) return {};
  const std::uint64_t key = key_of(peer, envelope);
  Transfer* const receive = find_posted(key, peer, envelope);
  if (receive == nullptr) return {};
  unlink(takes_every_tag(*receive) ? key_of(*receive) : key, *receive);
  const bool from_anyone = receive->peer == any_peer;
  return {settle(*receive, peer, envelope, &shape), receive, from_anyone};
}

MatchingQueue::Found MatchingQueue::post(Transfer& receive, Place place) {
  receive.state = Transfer::State::pending;
  const std::uint64_t key = key_of(receive);
  UnexpectedMessage* const message = find_unexpected(key, receive);
  if (message == nullptr) {
    place == Place::first ? posted_.add_first(key, receive) : posted_.add(key, receive);
    if (takes_every_tag(receive)) ++every_tag_count_;
    return {};
  }
  forget(*message);
  return {settle(receive, message->peer, message->envelope, message->shape.get()), message};
}

MatchingQueue::Found MatchingQueue::look(Transfer& receive) {
  UnexpectedMessage* const message = find_unexpected(key_of(receive), receive);
  if (message == nullptr) return {};
  forget(*message);
  return {settle(receive, message->peer, message->envelope, message->shape.get()), message};
}

void MatchingQueue::withdraw(Transfer& receive) { unlink(key_of(receive), receive); }
void MatchingQueue::forget(UnexpectedMessage& message) { unexpected_.remove(key_of(message), message); }

UnexpectedMessage& MatchingQueue::keep(int peer, const Envelope& envelope, const MessageShape& shape, Transfer* probe) {
  UnexpectedMessage& message = take_entry(peer, envelope, &shape);
  if (probe != nullptr) {
    message.order = unexpected_.take_order();
    reserve(message, *probe);
  } else {
    unexpected_.add(key_of(message), message);
  }
  return message;
}

void MatchingQueue::reserve(UnexpectedMessage& message, Transfer& probe) {
  message.reserved_by = &probe;
  reserved_.push_back(&message);
  finish(probe);
  probe.handle = &message;
}

UnexpectedMessage& MatchingQueue::release(Transfer& probe) {
  auto& message = *static_cast<UnexpectedMessage*>(std::exchange(probe.handle, nullptr));
  message.reserved_by = nullptr;
  std::erase(reserved_, &message);
  return message;
}

void MatchingQueue::lose(UnexpectedMessage& message, std::string why, Transfer::Refusal refusal) {
  Transfer& probe = *message.reserved_by;
  release(probe);
  probe.refusal = refusal;
  fail(probe, std::move(why));
}

UnexpectedMessage* find_reserved(const MatchingQueue& queue, int peer, std::uint64_t id) {
  const auto found = std::ranges::find_if(queue.reserved(), [=](const UnexpectedMessage* message) {
    return message->peer == peer && message->announced && message->id == id;
  });
  return found == queue.reserved().end() ? nullptr : *found;
}

void MatchingQueue::put_back(UnexpectedMessage& message) { unexpected_.add_in_order(key_of(message), message); }

UnexpectedMessage& MatchingQueue::take_entry(int peer, const Envelope& envelope, const MessageShape* shape) {
  if (pool_ == nullptr) pool_ = entries_.emplace_back(std::make_unique<UnexpectedMessage>()).get();
  UnexpectedMessage& message = *std::exchange(pool_, pool_->next);
  pooled_bytes_ -= message.room_bytes;
  held_bytes_ += message.room_bytes;
  message.peer = peer;
  message.envelope = envelope;
  if (needs_shape(envelope) && shape != nullptr) message.shape = std::make_unique<MessageShape>(*shape);
  return message;
}

MatchingQueue::GivenBack MatchingQueue::give_back(const Transfer& receive) {
  UnexpectedMessage* message = used_again_by(receive);
  GivenBack given{};
  if (message == nullptr) {
    message = &take_copy(receive);
    given.rest = message->rest.get();
  }
  message->claimed = nullptr;
  given.match = match(message->peer, message->envelope, message->shape ? *message->shape : MessageShape{});
  switch (given.match.fit) {
    case Fit::none: unexpected_.add_first(key_of(*message), *message); break;
    case Fit::taken: use_again(*message, given.match.receive); break;
    case Fit::reserved: reserve(*message, *given.match.receive); break;
    case Fit::refused:
      given.match.receive->handle = nullptr;
      use_again(*message, nullptr);
      break;
  }
  return given;
}

// All bytes are copied, because those that have come may lie anywhere in the message.
UnexpectedMessage& MatchingQueue::take_copy(const Transfer& receive) {
  UnexpectedMessage& message = take_entry(receive.peer, receive.envelope, receive.shape);
  const std::int64_t bytes = receive.envelope.bytes;
  try {
    std::byte* const room = make_room(message);
    if (receive.state == Transfer::State::pending) {
      message.rest = std::make_unique<Transfer>(Transfer{.envelope = receive.envelope,
                                                         .peer = receive.peer,
                                                         .to = room,
                                                         .state = Transfer::State::pending,
                                                         .watcher = this,
                                                         .handle = receive.handle});
    }
    if (bytes > 0) std::memcpy(room, receive.to, static_cast<std::size_t>(bytes));
  } catch (...) {
    recycle(message);
    throw;
  }
  message.was_received = true;
  return message;
}

bool MatchingQueue::use_again(UnexpectedMessage& message, Transfer* receive) {
  if (!message.was_received) return false;
  if (message.rest && message.rest->state == Transfer::State::pending) {
    message.is_unwanted = receive == nullptr;
    message.claimed = receive;
    if (receive != nullptr) set_stage(*receive, Stage::again);
    return true;
  }
  if (receive != nullptr) {
    const auto bytes = static_cast<std::size_t>(message.envelope.bytes);
    if (bytes > 0) std::memcpy(receive->to, message.payload.get(), bytes);
    finish(*receive);
  }
  recycle(message);
  return true;
}

bool MatchingQueue::cancel_used_again(const Transfer& receive) {
  UnexpectedMessage* const message = used_again_by(receive);
  if (message == nullptr) return false;
  message->claimed = nullptr;
  message->is_unwanted = true;
  return true;
}

UnexpectedMessage* MatchingQueue::used_again_by(const Transfer& receive) const {
  const auto found = std::ranges::find_if(
      entries_, [&](const auto& entry) { return entry->rest != nullptr && entry->claimed == &receive; });
  return found == entries_.end() ? nullptr : found->get();
}

// The rest of a message that was given back has come, or will never come.
void MatchingQueue::is_over(Transfer& rest) {
  UnexpectedMessage& message =
      **std::ranges::find_if(entries_, [&](const auto& entry) { return entry->rest.get() == &rest; });
  const bool is_whole = rest.state == Transfer::State::done;
  Transfer* const receive = std::exchange(message.claimed, nullptr);
  if (receive == nullptr && !message.is_unwanted) {
    if (is_whole) return;  // it stays until somebody receives it
    forget(message);
  }
  if (is_whole && receive != nullptr) {
    use_again(message, receive);
    return;
  }
  if (receive != nullptr) fail(*receive, rest.error);
  recycle(message);
}

std::byte* MatchingQueue::make_room(UnexpectedMessage& message) {
  const std::int64_t bytes = message.envelope.bytes;
  if (message.room_bytes < bytes) {
    message.payload = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(bytes));
    held_bytes_ += bytes - message.room_bytes;
    message.room_bytes = bytes;
  }
  return message.payload.get();
}

void MatchingQueue::recycle(UnexpectedMessage& message) {
  held_bytes_ -= message.room_bytes;
  if (pooled_bytes_ + message.room_bytes > pooled_bytes_max) {
    message.payload.reset();
    message.room_bytes = 0;
  }
  pooled_bytes_ += message.room_bytes;
  message = UnexpectedMessage{.payload = std::move(message.payload), .room_bytes = message.room_bytes, .next = pool_};
  pool_ = &message;
}

Transfer* MatchingQueue::withdraw_all(int peer) {
  return posted_.remove_if([&](const Transfer& receive) {
    if (receive.peer != peer) return false;
    if (takes_every_tag(receive)) --every_tag_count_;
    return true;
  });
}

std::vector<Transport::Unreceived> MatchingQueue::unreceived(std::uint64_t group, std::uint32_t epoch) const {
  std::vector<const UnexpectedMessage*> found;
  unexpected_.for_each([&](const UnexpectedMessage& each) {
    const Envelope& envelope = each.envelope;
    if (envelope.channel == point_to_point_channel && envelope.group == group && envelope.epoch == epoch)
      found.push_back(&each);
  });
  std::ranges::sort(found, {}, &UnexpectedMessage::order);
  std::vector<Transport::Unreceived> all;
  for (const UnexpectedMessage* each : found) all.push_back({each->peer, each->envelope.tag});
  return all;
}

UnexpectedMessage* MatchingQueue::forget(std::uint64_t group, std::uint64_t up_to_sequence) {
  return unexpected_.remove_if([=](const UnexpectedMessage& message) {
    if (message.envelope.group != group) return false;
    if (up_to_sequence == every_sequence) return true;
    return message.envelope.channel == collective_channel && message.envelope.signature.sequence <= up_to_sequence;
  });
}

UnexpectedMessage* MatchingQueue::forget(std::uint32_t channel) {
  return unexpected_.remove_if(
      [channel](const UnexpectedMessage& message) { return message.envelope.channel == channel; });
}

UnexpectedMessage* MatchingQueue::forget_announced(int peer) {
  return unexpected_.remove_if(
      [peer](const UnexpectedMessage& message) { return message.peer == peer && message.announced; });
}

UnexpectedMessage* MatchingQueue::forget_announced(int peer, std::uint64_t id) {
  return unexpected_.remove_if(
      [=](const UnexpectedMessage& message) { return message.peer == peer && message.announced && message.id == id; });
}

}  // namespace tutti::messages
