// announced_receives.cpp: receives whose message was announced.
// SPDX-License-Identifier: Apache-2.0
#include "messages/announced_receives.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "kernel/stream.hpp"

namespace tutti::messages {

std::int64_t streamed_bytes_min() {
  static const std::int64_t bytes = kernel::shared_cache_bytes() / 4;
  return bytes;
}

bool AnnouncedReceives::begin(Peer& peer, Transfer& receive, const Announcement& announcement, int asked) {
  const std::int64_t bytes = receive.envelope.bytes;
  const RemoteKey& key = announcement.key;
  if (bytes == 0) {
    finish(receive);
    setup_.sender.reply_fin(peer, announcement.message);
    return true;
  }
  if (key.size > 0 && !peer.link->is_exposed(peer.rank, key, bytes)) return false;
  const std::uint64_t number = inbound_.add({.receive = &receive,
                                             .message = announcement.message,
                                             .asked = asked,
                                             .get = {.peer = peer.rank, .key = key, .to = receive.to, .bytes = bytes}});
  Inbound& inbound = *inbound_.find(number);
  inbound.number = number;
  set_object(receive, inbound);
  remote_count_ += peer.is_remote ? 1 : 0;
  if (key.size > 0 && peer.link->can_get(peer.rank, key, bytes)) {
    inbound.way = Inbound::Way::get;
    getting_.push_back(number);
  } else {
    ask_for_fragments(inbound);
  }
  return true;
}

void AnnouncedReceives::ask_for_fragments(Inbound& inbound) {
  inbound.way = Inbound::Way::fragments;
  inbound.missing_bytes = inbound.get.bytes;
  setup_.sender.reply(peer_of(inbound),
                      {.type = FrameType::cts, .numbers = {.first = inbound.message, .second = inbound.number}});
}

bool AnnouncedReceives::get() {
  std::int64_t budget_bytes = peer_of(*inbound_.find(getting_.front())).limits.get_bytes_per_poll;
  bool moved = false;
  for (std::size_t i = 0; i < getting_.size() && budget_bytes > 0;) {
    Inbound& inbound = *inbound_.find(getting_[i]);
    std::int64_t moved_bytes = 0;
    const bool goes_on = step(inbound, budget_bytes, moved_bytes);
    budget_bytes -= moved_bytes;
    moved |= !goes_on || moved_bytes > 0;
    if (goes_on) ++i;
  }
  return moved;
}

// False if the read is over, for better or worse; then it is no longer listed.
bool AnnouncedReceives::step(Inbound& inbound, std::int64_t bytes_max, std::int64_t& moved_bytes) {
  const std::int64_t before = inbound.get.done_bytes;
  Peer& peer = peer_of(inbound);
  Transfer& receive = *inbound.receive;
  const std::uint64_t message = inbound.message;
  const GetStatus status = peer.link->get(inbound.get, bytes_max);
  moved_bytes = inbound.get.done_bytes - before;
  switch (status) {
    case GetStatus::moving: return true;
    case GetStatus::complete:
      remove(inbound);
      finish(receive);
      setup_.sender.reply_fin(peer, message);
      return false;
    case GetStatus::withdrawn: withdrawn(inbound); return false;
    case GetStatus::not_permitted:  // it was permitted once; the message comes from its beginning, the other way
      std::erase(getting_, inbound.number);
      ask_for_fragments(inbound);
      return false;
    case GetStatus::unreadable:
      remove(inbound);
      fail(receive, fmt::format("rank {}: the message of rank {} cannot be read from its memory; was the array freed "
                                "before its send had ended?",
                                setup_.rank, peer.rank));
      setup_.sender.reply_fin(peer, message);
      return false;
    case GetStatus::peer_gone:  // why, is for the network to say
      std::erase(getting_, inbound.number);
      inbound.way = Inbound::Way::stalled;
      setup_.network.attach(peer.rank);
      return false;
  }
  return true;
}

void AnnouncedReceives::remove(Inbound& inbound) {
  Peer& peer = peer_of(inbound);
  if (inbound.way == Inbound::Way::get) {
    peer.link->cancel_get(inbound.get);
    std::erase(getting_, inbound.number);
  }
  inbound_.remove(inbound.number);
  remote_count_ -= peer.is_remote ? 1 : 0;
}

void AnnouncedReceives::cancelled(Peer& peer, std::uint64_t message) {
  std::uint64_t number = 0;
  bool is_here = false;
  inbound_.for_each([&](std::uint64_t, const Inbound& inbound) {
    if (inbound.get.peer != peer.rank || inbound.message != message) return;
    number = inbound.number;
    is_here = true;
  });
  if (is_here) withdrawn(*inbound_.find(number));
}

// Bytes of the message that have come already do not matter: the receive's memory is its own until it is done.
void AnnouncedReceives::withdrawn(Inbound& inbound) {
  Transfer& receive = *inbound.receive;
  const int peer = inbound.get.peer, asked = inbound.asked;
  remove(inbound);
  if (asked == this_message) {
    receive.refusal = Transfer::Refusal::taken_back;
    return fail(receive, taken_back(peer));
  }
  setup_.user.withdrawn(receive, asked);
}

// Fragments that are still to come find nothing.
void AnnouncedReceives::cancel(Transfer& receive) {
  Inbound& inbound = object_of<Inbound>(receive);
  setup_.sender.reply_fin(peer_of(inbound), inbound.message);
  remove(inbound);
}

void AnnouncedReceives::redirect(const Transfer& receive, Transfer& rest) {
  Inbound& inbound = object_of<Inbound>(receive);
  if (inbound.way == Inbound::Way::get) peer_of(inbound).link->cancel_get(inbound.get);
  inbound.receive = &rest;
  inbound.asked = this_message;
  inbound.get.to = rest.to;
}

void AnnouncedReceives::fail_all(Peer& peer) {
  inbound_.for_each([&](std::uint64_t, Inbound& inbound) {
    if (inbound.get.peer != peer.rank) return;
    Transfer& receive = *inbound.receive;
    remove(inbound);
    fail(receive, peer.reason);
  });
}

bool AnnouncedReceives::expects(const Peer& peer, const Numbers& numbers, std::int64_t bytes) {
  const Inbound* const inbound = inbound_.find(numbers.first);
  if (inbound == nullptr || inbound->get.peer != peer.rank || inbound->way != Inbound::Way::fragments) return false;
  const auto offset = static_cast<std::int64_t>(numbers.second);
  const std::int64_t whole = inbound->get.bytes;
  if (offset < 0 || offset > whole || bytes > whole - offset || bytes > inbound->missing_bytes) {
    throw MalformedMessage(
        fmt::format("a fragment of {} bytes at {} does not fit into its message of {} bytes", bytes, offset, whole));
  }
  return true;
}

std::byte* AnnouncedReceives::place_of(const Numbers& numbers) {
  const Inbound* const inbound = inbound_.find(numbers.first);
  return inbound != nullptr ? inbound->receive->to + numbers.second : nullptr;
}

void AnnouncedReceives::put(const Numbers& numbers, std::span<const std::byte> payload) {
  std::byte* const place = place_of(numbers);
  if (inbound_.find(numbers.first)->get.bytes >= streamed_bytes_min())
    return kernel::copy_streaming(place, payload.data(), payload.size());
  std::memcpy(place, payload.data(), payload.size());
}

void AnnouncedReceives::fragment_came(std::uint64_t number, std::int64_t bytes) {
  Inbound* const inbound = inbound_.find(number);
  if (inbound == nullptr) return;
  inbound->missing_bytes -= bytes;
  if (inbound->missing_bytes > 0) return;
  Transfer& receive = *inbound->receive;
  remove(*inbound);
  finish(receive);
}

std::string AnnouncedReceives::taken_back(int peer) const {
  return fmt::format(
      "rank {}: rank {} took the message back while it was being received; its call was cancelled there, see its error",
      setup_.rank, peer);
}

}  // namespace tutti::messages
