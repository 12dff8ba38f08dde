// tcp_receiver.cpp: receiving: what the caller asks for, and what its end means for messages under way.
// SPDX-License-Identifier: Apache-2.0
#include "transport/tcp_receiver.hpp"

#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace tutti::transport {

namespace {

void copy_payload(Transfer& receive, const std::byte* from) {
  if (receive.envelope.bytes > 0) std::memcpy(receive.to, from, static_cast<std::size_t>(receive.envelope.bytes));
}

}  // namespace

void Receiver::recv(Transfer& transfer) {
  set_stage(transfer, Stage::posted);
  const MatchingQueue::Found found = matching_queue_.post(transfer);
  switch (found.fit) {
    case MatchingQueue::Fit::taken: return use(*found.unexpected, transfer);
    case MatchingQueue::Fit::wrong_size: transfer.handle = nullptr; return discard(*found.unexpected);
    case MatchingQueue::Fit::none: break;
  }
  if (transfer.peer == any_peer || !setup_.peers[static_cast<std::size_t>(transfer.peer)].is_gone()) return;
  matching_queue_.withdraw(transfer);
  fail(transfer, setup_.peers[static_cast<std::size_t>(transfer.peer)].reason);
}

void Receiver::use(UnexpectedMessage& unexpected, Transfer& receive) {
  if (matching_queue_.use_again(unexpected, &receive)) return;
  if (unexpected.peer == setup_.rank) return take_from_self(unexpected, &receive);
  Peer& peer = setup_.peers[static_cast<std::size_t>(unexpected.peer)];
  if (unexpected.announced) {
    cts(receive, peer, unexpected.id);
    matching_queue_.recycle(unexpected);
  } else if (still_coming_in(unexpected)) {
    set_stage(receive, Stage::taken);
    unexpected.claimed = &receive;
  } else {
    copy_payload(receive, unexpected.payload.get());
    finish(receive);
    give_credit_back(peer, credit_cost(unexpected.envelope.bytes));
    matching_queue_.recycle(unexpected);
  }
}

// The entry goes back to the matching queue now, or once the last of its bytes is read.
void Receiver::discard(UnexpectedMessage& unexpected) {
  if (matching_queue_.use_again(unexpected, nullptr)) return;
  if (unexpected.peer == setup_.rank) return take_from_self(unexpected, nullptr);
  Peer& peer = setup_.peers[static_cast<std::size_t>(unexpected.peer)];
  if (unexpected.announced) {
    tell_sender(peer, FrameType::drop, {.first = unexpected.id});
    matching_queue_.recycle(unexpected);
  } else if (still_coming_in(unexpected)) {
    for (Link* link : peer.incoming) {
      if (link->incoming.unexpected == &unexpected) link->incoming.forgotten = true;
    }
  } else {
    give_credit_back(peer, credit_cost(unexpected.envelope.bytes));
    matching_queue_.recycle(unexpected);
  }
}

bool Receiver::still_coming_in(const UnexpectedMessage& unexpected) const {
  return !unexpected.announced && unexpected.arrived_bytes < unexpected.envelope.bytes;
}

void Receiver::cts(Transfer& receive, Peer& peer, std::uint64_t message) {
  const std::int64_t bytes = receive.envelope.bytes;
  if (bytes == 0) {
    finish(receive);
    return tell_sender(peer, FrameType::drop, {.first = message});
  }
  set_stage(receive, Stage::taken);
  const std::uint64_t number =
      inbound_.add({.receive = &receive, .peer = peer.rank, .message = message, .missing_bytes = bytes});
  tell_sender(peer, FrameType::cts, {.first = message, .second = number});
}

void Receiver::cancel(Transfer& transfer) {
  if (stage_of(transfer) == Stage::posted) return matching_queue_.withdraw(transfer);
  if (matching_queue_.cancel_used_again(transfer)) return;
  if (Link* const link = link_reading(transfer)) {
    Incoming& incoming = link->incoming;
    if (incoming.kind == Incoming::Kind::receive) {
      incoming.kind = Incoming::Kind::discard;
      incoming.receive = nullptr;
    } else {
      incoming.unexpected->claimed = nullptr;
      incoming.forgotten = true;
    }
    return;
  }
  // Its bytes find no grant any more and are thrown away.
  inbound_.for_each([&](std::uint64_t number, const Inbound& inbound) {
    if (inbound.receive == &transfer) inbound_.remove(number);
  });
}

void Receiver::replace(const Transfer& receive, Transfer& by) {
  if (Link* const link = link_reading(receive)) {
    Incoming& incoming = link->incoming;
    (incoming.kind == Incoming::Kind::receive ? incoming.receive : incoming.unexpected->claimed) = &by;
    return;
  }
  inbound_.for_each([&](std::uint64_t, Inbound& inbound) {
    if (inbound.receive == &receive) inbound.receive = &by;
  });
}

Link* Receiver::link_reading(const Transfer& receive) {
  for (Link* link : setup_.peers[static_cast<std::size_t>(receive.peer)].incoming) {
    const Incoming& incoming = link->incoming;
    if (incoming.kind == Incoming::Kind::receive && incoming.receive == &receive) return link;
    if (incoming.kind == Incoming::Kind::unexpected && incoming.unexpected->claimed == &receive) return link;
  }
  return nullptr;
}

void Receiver::forget(std::uint64_t group, std::uint64_t up_to_sequence) {
  for (UnexpectedMessage* chain = matching_queue_.forget(group, up_to_sequence); chain != nullptr;) {
    discard(*std::exchange(chain, chain->next));
  }
}

void Receiver::fail_all(Peer& peer) {
  for (Transfer* chain = matching_queue_.withdraw_all(peer.rank); chain != nullptr;) {
    fail(*std::exchange(chain, chain->next), peer.reason);
  }
  inbound_.for_each([&](std::uint64_t number, const Inbound& inbound) {
    if (inbound.peer != peer.rank) return;
    fail(*inbound.receive, peer.reason);
    inbound_.remove(number);
  });
  for (Link* link : peer.incoming) {
    const Incoming incoming = std::exchange(link->incoming, {});
    if (incoming.kind == Incoming::Kind::receive) fail(*incoming.receive, peer.reason);
    if (incoming.kind != Incoming::Kind::unexpected) continue;
    if (incoming.unexpected->claimed != nullptr) {
      fail(*incoming.unexpected->claimed, peer.reason);
    } else if (!incoming.forgotten) {
      matching_queue_.forget(*incoming.unexpected);
    }
    matching_queue_.recycle(*incoming.unexpected);
  }
  for (UnexpectedMessage* chain = matching_queue_.forget_announced(peer.rank); chain != nullptr;) {
    matching_queue_.recycle(*std::exchange(chain, chain->next));
  }
}

bool Receiver::deliver_to_self(Transfer& send) {
  if (listener_->arrived(setup_.rank, send.envelope) == TransportListener::Verdict::drop) return true;
  const MatchingQueue::Match match = matching_queue_.match(setup_.rank, send.envelope);
  if (match.receive != nullptr) {
    match.receive->handle = nullptr;
    if (match.fit == MatchingQueue::Fit::taken) {
      copy_payload(*match.receive, send.from);
      finish(*match.receive);
    }
    return true;
  }
  UnexpectedMessage& unexpected = matching_queue_.keep(setup_.rank, send.envelope);
  Peer& self = setup_.peers[static_cast<std::size_t>(setup_.rank)];
  const std::int64_t cost = credit_cost(send.envelope.bytes);
  if (send.envelope.bytes > setup_.options.eager_bytes_max || cost > self.credit_bytes) {
    unexpected.announced = true;
    unexpected.id = reinterpret_cast<std::uintptr_t>(&send);
    return false;
  }
  self.credit_bytes -= cost;
  std::byte* const room = matching_queue_.make_room(unexpected);
  if (send.envelope.bytes > 0) std::memcpy(room, send.from, static_cast<std::size_t>(send.envelope.bytes));
  unexpected.arrived_bytes = send.envelope.bytes;
  return true;
}

void Receiver::take_from_self(UnexpectedMessage& unexpected, Transfer* receive) {
  auto* const send =
      unexpected.announced ? reinterpret_cast<Transfer*>(static_cast<std::uintptr_t>(unexpected.id)) : nullptr;
  if (receive != nullptr) {
    copy_payload(*receive, send != nullptr ? send->from : unexpected.payload.get());
    finish(*receive);
  }
  if (send != nullptr) {
    finish(*send);
  } else {
    setup_.peers[static_cast<std::size_t>(setup_.rank)].credit_bytes += credit_cost(unexpected.envelope.bytes);
  }
  matching_queue_.recycle(unexpected);
}

void Receiver::cancel_to_self(Transfer& send) {
  matching_queue_.recycle(*matching_queue_.forget_announced(setup_.rank, reinterpret_cast<std::uintptr_t>(&send)));
}

}  // namespace tutti::transport
