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
  const Mailbox::Found found = mailbox_.post(transfer);
  switch (found.fit) {
    case Mailbox::Fit::taken: return use(*found.arrival, transfer);
    case Mailbox::Fit::wrong_size: transfer.handle = nullptr; return discard(*found.arrival);
    case Mailbox::Fit::none: break;
  }
  if (transfer.peer == any_peer || !setup_.peers[static_cast<std::size_t>(transfer.peer)].is_gone()) return;
  mailbox_.withdraw(transfer);
  fail(transfer, setup_.peers[static_cast<std::size_t>(transfer.peer)].reason);
}

void Receiver::use(Arrival& arrival, Transfer& receive) {
  if (mailbox_.use_again(arrival, &receive)) return;
  if (arrival.peer == setup_.rank) return take_from_self(arrival, &receive);
  Peer& peer = setup_.peers[static_cast<std::size_t>(arrival.peer)];
  if (arrival.announced) {
    grant(receive, peer, arrival.id);
    mailbox_.recycle(arrival);
  } else if (still_coming_in(arrival)) {
    set_stage(receive, Stage::taken);
    arrival.claimed = &receive;
  } else {
    copy_payload(receive, arrival.payload.get());
    finish(receive);
    give_credit_back(peer, credit_cost(arrival.envelope.bytes));
    mailbox_.recycle(arrival);
  }
}

// The entry goes back to the mailbox now, or once the last of its bytes is read.
void Receiver::discard(Arrival& arrival) {
  if (mailbox_.use_again(arrival, nullptr)) return;
  if (arrival.peer == setup_.rank) return take_from_self(arrival, nullptr);
  Peer& peer = setup_.peers[static_cast<std::size_t>(arrival.peer)];
  if (arrival.announced) {
    tell_sender(peer, FrameType::drop, {.first = arrival.id});
    mailbox_.recycle(arrival);
  } else if (still_coming_in(arrival)) {
    for (Link* link : peer.incoming) {
      if (link->incoming.arrival == &arrival) link->incoming.forgotten = true;
    }
  } else {
    give_credit_back(peer, credit_cost(arrival.envelope.bytes));
    mailbox_.recycle(arrival);
  }
}

bool Receiver::still_coming_in(const Arrival& arrival) const {
  return !arrival.announced && arrival.arrived_bytes < arrival.envelope.bytes;
}

void Receiver::grant(Transfer& receive, Peer& peer, std::uint64_t message) {
  const std::int64_t bytes = receive.envelope.bytes;
  if (bytes == 0) {
    finish(receive);
    return tell_sender(peer, FrameType::drop, {.first = message});
  }
  set_stage(receive, Stage::taken);
  const std::uint64_t number =
      inbound_.add({.receive = &receive, .peer = peer.rank, .message = message, .missing_bytes = bytes});
  tell_sender(peer, FrameType::grant, {.first = message, .second = number});
}

void Receiver::cancel(Transfer& transfer) {
  if (stage_of(transfer) == Stage::posted) return mailbox_.withdraw(transfer);
  if (mailbox_.cancel_used_again(transfer)) return;
  if (Link* const link = link_reading(transfer)) {
    Incoming& incoming = link->incoming;
    if (incoming.kind == Incoming::Kind::receive) {
      incoming.kind = Incoming::Kind::discard;
      incoming.receive = nullptr;
    } else {
      incoming.arrival->claimed = nullptr;
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
    (incoming.kind == Incoming::Kind::receive ? incoming.receive : incoming.arrival->claimed) = &by;
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
    if (incoming.kind == Incoming::Kind::arrival && incoming.arrival->claimed == &receive) return link;
  }
  return nullptr;
}

void Receiver::forget(std::uint64_t group, std::uint64_t up_to_sequence) {
  for (Arrival* chain = mailbox_.forget(group, up_to_sequence); chain != nullptr;) {
    discard(*std::exchange(chain, chain->next));
  }
}

void Receiver::fail_all(Peer& peer) {
  for (Transfer* chain = mailbox_.withdraw_all(peer.rank); chain != nullptr;) {
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
    if (incoming.kind != Incoming::Kind::arrival) continue;
    if (incoming.arrival->claimed != nullptr) {
      fail(*incoming.arrival->claimed, peer.reason);
    } else if (!incoming.forgotten) {
      mailbox_.forget(*incoming.arrival);
    }
    mailbox_.recycle(*incoming.arrival);
  }
  for (Arrival* chain = mailbox_.forget_announced(peer.rank); chain != nullptr;) {
    mailbox_.recycle(*std::exchange(chain, chain->next));
  }
}

bool Receiver::deliver_to_self(Transfer& send) {
  if (listener_->arrived(setup_.rank, send.envelope) == TransportListener::Verdict::drop) return true;
  const Mailbox::Match match = mailbox_.match(setup_.rank, send.envelope);
  if (match.receive != nullptr) {
    match.receive->handle = nullptr;
    if (match.fit == Mailbox::Fit::taken) {
      copy_payload(*match.receive, send.from);
      finish(*match.receive);
    }
    return true;
  }
  Arrival& arrival = mailbox_.keep(setup_.rank, send.envelope);
  Peer& self = setup_.peers[static_cast<std::size_t>(setup_.rank)];
  const std::int64_t cost = credit_cost(send.envelope.bytes);
  if (send.envelope.bytes > setup_.options.eager_bytes_max || cost > self.credit_bytes) {
    arrival.announced = true;
    arrival.id = reinterpret_cast<std::uintptr_t>(&send);
    return false;
  }
  self.credit_bytes -= cost;
  std::byte* const room = mailbox_.make_room(arrival);
  if (send.envelope.bytes > 0) std::memcpy(room, send.from, static_cast<std::size_t>(send.envelope.bytes));
  arrival.arrived_bytes = send.envelope.bytes;
  return true;
}

void Receiver::take_from_self(Arrival& arrival, Transfer* receive) {
  auto* const send = arrival.announced ? reinterpret_cast<Transfer*>(static_cast<std::uintptr_t>(arrival.id)) : nullptr;
  if (receive != nullptr) {
    copy_payload(*receive, send != nullptr ? send->from : arrival.payload.get());
    finish(*receive);
  }
  if (send != nullptr) {
    finish(*send);
  } else {
    setup_.peers[static_cast<std::size_t>(setup_.rank)].credit_bytes += credit_cost(arrival.envelope.bytes);
  }
  mailbox_.recycle(arrival);
}

void Receiver::cancel_to_self(Transfer& send) {
  mailbox_.recycle(*mailbox_.forget_announced(setup_.rank, reinterpret_cast<std::uintptr_t>(&send)));
}

}  // namespace tutti::transport
