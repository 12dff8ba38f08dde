// host_fetch.cpp: receiving inside a host: messages that stay with their sender until they are fetched.
// SPDX-License-Identifier: Apache-2.0
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include <fmt/format.h>

#include "shm/doorbell.hpp"
#include "transport/host_receiver.hpp"
#include "transport/stage.hpp"

namespace tutti::transport::host {

const std::atomic<std::uint64_t>& Receiver::remote_key_of(const Peer& peer, const Rts& rts) const {
  if (rts.remote_key_offset % sizeof(std::uint64_t) != 0) throw MalformedMessage("an offer's permit is not a word");
  return *reinterpret_cast<const std::atomic<std::uint64_t>*>(
      in_arena(peer, rts.remote_key_offset, sizeof(std::uint64_t)));
}

void Receiver::rts_received(Peer& peer, const RtsBody& body) {
  const auto& [envelope, rts] = body;
  if (envelope.bytes < 0 || envelope.channel > 1 || static_cast<int>(envelope.signature.verb) >= verb_count) {
    throw MalformedMessage(fmt::format("an offer in shared memory makes no sense (lane {}, verb {}, {} bytes)",
                                       envelope.channel, static_cast<int>(envelope.signature.verb), envelope.bytes));
  }
  const std::atomic<std::uint64_t>& remote_key = remote_key_of(peer, rts);
  if (rts.arena_offset != Rts::nowhere) {
    static_cast<void>(in_arena(peer, rts.arena_offset, static_cast<std::uint64_t>(envelope.bytes)));
  }
  if (remote_key.load(std::memory_order_acquire) != rts.message) return;  // withdrawn before anybody saw it
  if (listener_->arrived(peer.rank, envelope) == TransportListener::Verdict::drop) {
    return setup_.sender.tell(peer, {.kind = RecordKind::done, .message = rts.message});
  }
  const MatchingQueue::Match match = find_receive(peer, envelope);
  switch (match.fit) {
    case MatchingQueue::Fit::taken:
      if (!begin_fetch(peer, *match.receive, rts)) fail(*match.receive, taken_back(peer));
      break;
    case MatchingQueue::Fit::wrong_size:
      match.receive->handle = nullptr;
      setup_.sender.tell(peer, {.kind = RecordKind::done, .message = rts.message});
      break;
    case MatchingQueue::Fit::none: {
      UnexpectedMessage& unexpected = setup_.matching_queue.keep(peer.rank, envelope);
      unexpected.announced = true;
      unexpected.id = waiting_.add({.peer = peer.rank, .rts = rts});
      break;
    }
  }
}

std::string Receiver::taken_back(const Peer& peer) const {
  return fmt::format(
      "rank {}: rank {} took the message back while it was being received; its call was cancelled there, see its error",
      setup_.rank, peer.rank);
}

// False if the message is not there any more.
bool Receiver::begin_fetch(Peer& peer, Transfer& receive, const Rts& rts) {
  const std::atomic<std::uint64_t>& remote_key = remote_key_of(peer, rts);
  if (remote_key.load(std::memory_order_acquire) != rts.message) return false;
  const auto bytes = static_cast<std::uint64_t>(receive.envelope.bytes);
  Inbound inbound{.receive = &receive, .peer = peer.rank, .message = rts.message, .remote_key = &remote_key};
  set_stage(receive, Stage::taken);
  if (rts.arena_offset != Rts::nowhere || bytes == 0) {
    inbound.way = Way::load;
    inbound.shared = bytes == 0 ? nullptr : in_arena(peer, rts.arena_offset, bytes);
  } else if (setup_.options.cross_memory && receive.envelope.bytes <= setup_.options.fetch_bytes_max &&
             setup_.local_peers.may_read_memory_of(peer.rank)) {
    inbound.way = Way::cross_memory;
    inbound.address = rts.address;
  } else {
    inbound.way = Way::fragments;
    setup_.sender.tell(peer, {.kind = RecordKind::cts, .message = rts.message});
  }
  inbound_.push_back(inbound);
  return true;
}

bool Receiver::fetch() {
  std::int64_t budget = setup_.options.fetch_bytes_per_poll;
  bool moved = false;
  for (std::size_t i = 0; i < inbound_.size() && budget > 0;) {
    Inbound& inbound = inbound_[i];
    if (inbound.way == Way::fragments || inbound.way == Way::stalled) {
      ++i;
      continue;
    }
    const std::int64_t fetched = fetch(inbound, budget);
    budget -= fetched;
    moved |= fetched > 0;
    const bool failed = inbound.receive == nullptr;
    if (!failed && inbound.way != Way::fragments && inbound.arrived_bytes == inbound.receive->envelope.bytes) {
      moved = true;
      settle(inbound);
    }
    if (inbound.receive == nullptr) {
      inbound_.erase(inbound_.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
  return moved;
}

std::int64_t Receiver::fetch(Inbound& inbound, std::int64_t limit) {
  const Transfer& receive = *inbound.receive;
  const std::int64_t some = std::min(limit, receive.envelope.bytes - inbound.arrived_bytes);
  if (some == 0) return 0;
  if (inbound.way == Way::load) {
    std::memcpy(receive.to + inbound.arrived_bytes, inbound.shared + inbound.arrived_bytes,
                static_cast<std::size_t>(some));
    inbound.arrived_bytes += some;
    return some;
  }
  const auto offset = static_cast<std::uint64_t>(inbound.arrived_bytes);
  const iovec here{.iov_base = receive.to + inbound.arrived_bytes, .iov_len = static_cast<std::size_t>(some)};
  const iovec there{.iov_base = reinterpret_cast<void*>(inbound.address + offset),
                    .iov_len = static_cast<std::size_t>(some)};
  const auto process = static_cast<pid_t>(setup_.local_peers.process_of(inbound.peer));
  const ssize_t got = process_vm_readv(process, &here, 1, &there, 1, 0);
  if (got <= 0) return fetch_failed(inbound, got == 0 ? EFAULT : errno);
  inbound.arrived_bytes += got;
  return got;
}

std::int64_t Receiver::fetch_failed(Inbound& inbound, int error) {
  Peer& peer = setup_.peers[static_cast<std::size_t>(inbound.peer)];
  if (error == EINTR || error == EAGAIN) return 0;
  if (error == ESRCH) {
    // It died. Why, and that it is to blame, is for those to say who watch over the peers.
    inbound.way = Way::stalled;
    setup_.suspect(inbound.peer);
    return 0;
  }
  if (error == EPERM || error == ENOSYS) {
    // It was permitted once. The message comes from its beginning, the other way.
    inbound.way = Way::fragments;
    inbound.arrived_bytes = 0;
    setup_.sender.tell(peer, {.kind = RecordKind::cts, .message = inbound.message});
    return 0;
  }
  const bool withdrawn = inbound.remote_key->load(std::memory_order_acquire) != inbound.message;
  if (!withdrawn) setup_.sender.tell(peer, {.kind = RecordKind::done, .message = inbound.message});
  fail(*inbound.receive, withdrawn
                             ? taken_back(peer)
                             : fmt::format("rank {}: the message of rank {} cannot be read from its memory ({}); was "
                                           "the array freed before its send had ended?",
                                           setup_.rank, peer.rank, std::generic_category().message(error)));
  inbound.receive = nullptr;
  return 0;
}

// The last byte is here. It is the message only if its memory was not taken back in the meantime.
void Receiver::settle(Inbound& inbound) {
  Peer& peer = setup_.peers[static_cast<std::size_t>(inbound.peer)];
  shm::fence_before_notify();  // the copy is over before the remote key is looked at
  if (inbound.remote_key->load(std::memory_order_acquire) == inbound.message) {
    finish(*inbound.receive);
    setup_.sender.tell(peer, {.kind = RecordKind::done, .message = inbound.message});
  } else {
    fail(*inbound.receive, taken_back(peer));
  }
  inbound.receive = nullptr;
}

void Receiver::fragment(Peer& peer, const Record& record) {
  const auto head = read_body<FragmentHead>(record);
  const auto bytes = static_cast<std::int64_t>(record.bytes - sizeof head);
  const auto found = std::ranges::find_if(inbound_, [&](const Inbound& inbound) {
    return inbound.peer == peer.rank && inbound.message == head.message && inbound.way == Way::fragments;
  });
  if (found == inbound_.end()) return;  // of a receive that was cancelled
  Transfer& receive = *found->receive;
  if (head.offset != found->arrived_bytes || bytes > receive.envelope.bytes - head.offset) {
    throw MalformedMessage(fmt::format("a piece of {} bytes at {} does not continue its message of {} bytes", bytes,
                                       head.offset, receive.envelope.bytes));
  }
  std::memcpy(receive.to + head.offset, record.body + sizeof head, static_cast<std::size_t>(bytes));
  found->arrived_bytes += bytes;
  if (found->arrived_bytes < receive.envelope.bytes) return;
  finish(receive);
  inbound_.erase(found);
}

void Receiver::cancelled(const Peer& peer, std::uint64_t message) {
  waiting_.for_each([&](std::uint64_t number, const Waiting& waiting) {
    if (waiting.peer != peer.rank || waiting.rts.message != message) return;
    if (UnexpectedMessage* const unexpected = setup_.matching_queue.forget_announced(peer.rank, number))
      setup_.matching_queue.recycle(*unexpected);
    waiting_.remove(number);
  });
  std::erase_if(inbound_, [&](const Inbound& inbound) {
    if (inbound.peer != peer.rank || inbound.message != message) return false;
    fail(*inbound.receive, taken_back(peer));
    return true;
  });
}

}  // namespace tutti::transport::host
