// host_receiver.cpp: receiving inside a host: what the caller asks for, and messages that come through the ring.
// SPDX-License-Identifier: Apache-2.0
#include "transport/host_receiver.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "shm/doorbell.hpp"
#include "transport/stage.hpp"

namespace tutti::transport::host {

namespace {

constexpr int records_per_read = 256;  // so that no peer starves the others

void copy_bytes(std::byte* to, const std::byte* from, std::int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

void check(const Envelope& envelope) {
  if (envelope.bytes < 0 || envelope.channel > 1 || static_cast<int>(envelope.signature.verb) >= verb_count) {
    throw MalformedMessage(
        fmt::format("the head of a message in shared memory makes no sense (lane {}, verb {}, {} bytes)",
                    envelope.channel, static_cast<int>(envelope.signature.verb), envelope.bytes));
  }
}

}  // namespace

// What the peer names as an offset may be anything.
const std::byte* Receiver::in_arena(const Peer& peer, std::uint64_t offset, std::uint64_t bytes) const try {
  return setup_.local_peers.at(peer.rank, offset, bytes);
} catch (const Error& error) {
  throw MalformedMessage(error.what());
}

bool Receiver::discover(Peer& peer) {
  const std::uint64_t offset = peer.theirs->ring_offset.load(std::memory_order_acquire);
  if (offset == 0) return false;
  const std::uint64_t bytes = setup_.options.ring_bytes;
  if (offset % line_bytes != 0) throw MalformedMessage("its ring in shared memory begins between two lines");
  peer.in = RingReader(in_arena(peer, offset, bytes), bytes / line_bytes);
  return true;
}

bool Receiver::read(Peer& peer) {
  int count = 0;
  for (; count < records_per_read; ++count) {
    const Record record = peer.in.next();
    if (record.kind == RecordKind::none) break;
    take(peer, record);
    peer.in.release(record);
  }
  if (count == 0) return false;
  tell_progress(peer);
  return true;
}

bool Receiver::try_take(Peer& peer, Transfer& receive, int spins) {
  while (!peer.in.has_news()) {
    if (--spins <= 0) return false;
  }
  const Record record = peer.in.next();
  if (record.kind != RecordKind::brief || peer.current.kind != Current::Kind::none) return false;
  const auto head = read_body<BriefHead>(record);
  const auto bytes = static_cast<std::int64_t>(record.bytes - sizeof head);
  const Envelope &last = peer.last_received, &wanted = receive.envelope;
  if (last.channel != point_to_point_channel || last.group != wanted.group || last.epoch != wanted.epoch ||
      head.tag != wanted.tag || bytes != wanted.bytes || bytes > setup_.options.eager_bytes_max)
    return false;
  receive.envelope.signature = last.signature;
  receive.envelope.signature.count = head.count;
  copy_bytes(receive.to, record.body + sizeof head, bytes);
  receive.error.clear();
  finish(receive);
  peer.in.release(record);
  peer.unreturned_bytes += credit_cost(bytes);
  give_credit_back(peer, credit_cost(bytes));
  tell_progress(peer);
  return true;
}

// Seldom: the line crosses to the sender, which looks at it only when its ring seems full.
void Receiver::tell_progress(Peer& peer) {
  if (peer.in.read_lines() - peer.read_lines_told < peer.in.lines() / 8) return;
  peer.read_lines_told = peer.in.read_lines();
  peer.ours->read_lines.store(peer.read_lines_told, std::memory_order_release);
  shm::notify(*peer.doorbell);
}

void Receiver::take(Peer& peer, const Record& record) {
  if ((peer.current.kind != Current::Kind::none) != (record.kind == RecordKind::more)) {
    throw MalformedMessage("a message in shared memory is interrupted by another one");
  }
  switch (record.kind) {
    case RecordKind::brief: {
      const auto head = read_body<BriefHead>(record);
      Envelope& envelope = peer.last_received;
      envelope.tag = head.tag;
      envelope.phase = head.phase;
      envelope.signature.sequence = head.sequence;
      envelope.signature.count = head.count;
      envelope.bytes = static_cast<std::int64_t>(record.bytes - sizeof head);
      return message(peer, Envelope(envelope), record.body + sizeof head, envelope.bytes);
    }
    case RecordKind::full: {
      const auto head = read_body<FullHead>(record);
      check(head.envelope);
      peer.last_received = head.envelope;
      return message(peer, head.envelope, record.body + sizeof head,
                     static_cast<std::int64_t>(record.bytes - sizeof head));
    }
    case RecordKind::more: return more(peer, record.body, record.bytes);
    case RecordKind::rts: return rts_received(peer, read_body<RtsBody>(record));
    case RecordKind::fragment: return fragment(peer, record);
    case RecordKind::done: return setup_.sender.done(peer, read_body<NotificationBody>(record).message);
    case RecordKind::cts: return setup_.sender.cts_received(peer, read_body<NotificationBody>(record).message);
    case RecordKind::cancel: return cancelled(peer, read_body<NotificationBody>(record).message);
    case RecordKind::none:
    case RecordKind::pad: break;
  }
}

void Receiver::message(Peer& peer, const Envelope& envelope, const std::byte* payload, std::int64_t bytes) {
  peer.unreturned_bytes += credit_cost(envelope.bytes);
  if (peer.unreturned_bytes > setup_.options.credit_bytes || bytes > envelope.bytes ||
      envelope.bytes > setup_.options.eager_bytes_max) {
    throw MalformedMessage(
        fmt::format("it sent {} of {} bytes through shared memory, with {} of credit; give all ranks "
                    "the same transport options",
                    bytes, envelope.bytes, setup_.options.credit_bytes));
  }
  const bool keep = listener_->arrived(peer.rank, envelope) == TransportListener::Verdict::keep;
  const MatchingQueue::Match match = keep ? find_receive(peer, envelope) : MatchingQueue::Match{};
  if (match.fit == MatchingQueue::Fit::taken && bytes == envelope.bytes) [[likely]] {
    copy_bytes(match.receive->to, payload, bytes);
    finish(*match.receive);
    return give_credit_back(peer, credit_cost(bytes));
  }
  peer.current = {.kind = Current::Kind::discard, .bytes = envelope.bytes};
  if (keep) place(peer, envelope, match);
  more(peer, payload, bytes);
}

MatchingQueue::Match Receiver::find_receive(const Peer& peer, const Envelope& envelope) {
  const MatchingQueue::Match match = setup_.matching_queue.match(peer.rank, envelope);
  if (match.receive != nullptr && !match.from_anyone) --posted_count_;
  return match;
}

void Receiver::place(Peer& peer, const Envelope& envelope, const MatchingQueue::Match& match) {
  switch (match.fit) {
    case MatchingQueue::Fit::taken:
      set_stage(*match.receive, Stage::taken);
      peer.current.kind = Current::Kind::receive;
      peer.current.receive = match.receive;
      break;
    case MatchingQueue::Fit::wrong_size: match.receive->handle = nullptr; break;
    case MatchingQueue::Fit::none:
      peer.current.kind = Current::Kind::unexpected;
      peer.current.unexpected = &setup_.matching_queue.keep(peer.rank, envelope);
      setup_.matching_queue.make_room(*peer.current.unexpected);
      break;
  }
}

void Receiver::more(Peer& peer, const std::byte* payload, std::int64_t bytes) {
  Current& current = peer.current;
  if (bytes > current.bytes - current.arrived_bytes) {
    throw MalformedMessage("a message in shared memory is longer than its head says");
  }
  if (current.kind == Current::Kind::receive) {
    copy_bytes(current.receive->to + current.arrived_bytes, payload, bytes);
  } else if (current.kind == Current::Kind::unexpected && !current.forgotten) {
    copy_bytes(current.unexpected->payload.get() + current.arrived_bytes, payload, bytes);
  }
  current.arrived_bytes += bytes;
  if (current.arrived_bytes == current.bytes) ended(peer);
}

void Receiver::ended(Peer& peer) {
  const Current current = std::exchange(peer.current, {});
  switch (current.kind) {
    case Current::Kind::receive:
      finish(*current.receive);
      give_credit_back(peer, credit_cost(current.bytes));
      break;
    case Current::Kind::unexpected: {
      UnexpectedMessage& unexpected = *current.unexpected;
      unexpected.arrived_bytes = current.bytes;
      if (current.forgotten) {
        discard(unexpected);
      } else if (Transfer* const receive = std::exchange(unexpected.claimed, nullptr)) {
        static_cast<void>(use(unexpected, *receive));  // a message that is here is not withdrawn
      }
      break;
    }
    case Current::Kind::discard: give_credit_back(peer, credit_cost(current.bytes)); break;
    case Current::Kind::none: break;
  }
}

Receiver::Use Receiver::use(UnexpectedMessage& unexpected, Transfer& receive) {
  if (setup_.matching_queue.use_again(unexpected, &receive)) return Use::taken;
  Peer& peer = setup_.peers[static_cast<std::size_t>(unexpected.peer)];
  if (unexpected.announced) {
    const Rts rts = waiting_.find(unexpected.id)->rts;
    waiting_.remove(unexpected.id);
    setup_.matching_queue.recycle(unexpected);
    return begin_fetch(peer, receive, rts) ? Use::taken : Use::withdrawn;
  }
  if (unexpected.arrived_bytes < unexpected.envelope.bytes) {
    set_stage(receive, Stage::taken);
    unexpected.claimed = &receive;
    return Use::taken;
  }
  copy_bytes(receive.to, unexpected.payload.get(), receive.envelope.bytes);
  finish(receive);
  give_credit_back(peer, credit_cost(unexpected.envelope.bytes));
  setup_.matching_queue.recycle(unexpected);
  return Use::taken;
}

void Receiver::discard(UnexpectedMessage& unexpected) {
  if (setup_.matching_queue.use_again(unexpected, nullptr)) return;
  Peer& peer = setup_.peers[static_cast<std::size_t>(unexpected.peer)];
  if (unexpected.announced) {
    setup_.sender.tell(peer, {.kind = RecordKind::done, .message = waiting_.find(unexpected.id)->rts.message});
    waiting_.remove(unexpected.id);
    setup_.matching_queue.recycle(unexpected);
  } else if (unexpected.arrived_bytes < unexpected.envelope.bytes) {
    peer.current.forgotten = true;  // its entry goes back once its last fragment has come
  } else {
    give_credit_back(peer, credit_cost(unexpected.envelope.bytes));
    setup_.matching_queue.recycle(unexpected);
  }
}

void Receiver::replace(Peer& peer, const Transfer& receive, Transfer& by) {
  Current& current = peer.current;
  if (current.kind == Current::Kind::receive && current.receive == &receive) {
    current.receive = &by;
  } else if (current.kind == Current::Kind::unexpected && current.unexpected->claimed == &receive) {
    current.unexpected->claimed = &by;
  } else if (const auto found = std::ranges::find(inbound_, &receive, &Inbound::receive); found != inbound_.end()) {
    found->receive = &by;
  }
}

void Receiver::cancel_taken(Peer& peer, Transfer& receive) {
  if (setup_.matching_queue.cancel_used_again(receive)) return;
  Current& current = peer.current;
  if (current.kind == Current::Kind::receive && current.receive == &receive) {
    current.kind = Current::Kind::discard;
    current.receive = nullptr;
    return;
  }
  if (current.kind == Current::Kind::unexpected && current.unexpected->claimed == &receive) {
    current.unexpected->claimed = nullptr;
    current.forgotten = true;
    return;
  }
  const auto found = std::ranges::find(inbound_, &receive, &Inbound::receive);
  if (found == inbound_.end()) return;
  // Pieces that are still to come find nothing.
  setup_.sender.tell(peer, {.kind = RecordKind::done, .message = found->message});
  inbound_.erase(found);
}

void Receiver::give_credit_back(Peer& peer, std::int64_t cost) {
  peer.used_up_bytes += cost;
  if (peer.used_up_bytes < setup_.options.credit_bytes / 4) return;
  const std::int64_t bytes = std::exchange(peer.used_up_bytes, 0);
  peer.unreturned_bytes -= bytes;
  peer.returned_bytes += static_cast<std::uint64_t>(bytes);
  peer.ours->returned_bytes.store(peer.returned_bytes, std::memory_order_release);
}

void Receiver::fail_all(Peer& peer) {
  const Current current = std::exchange(peer.current, {});
  if (current.kind == Current::Kind::receive) fail(*current.receive, peer.reason);
  if (current.kind == Current::Kind::unexpected) {
    if (current.unexpected->claimed != nullptr) {
      fail(*current.unexpected->claimed, peer.reason);
    } else if (!current.forgotten) {
      setup_.matching_queue.forget(*current.unexpected);
    }
    setup_.matching_queue.recycle(*current.unexpected);
  }
  std::erase_if(inbound_, [&](const Inbound& inbound) {
    if (inbound.peer != peer.rank) return false;
    fail(*inbound.receive, peer.reason);
    return true;
  });
  for (UnexpectedMessage* chain = setup_.matching_queue.forget_announced(peer.rank); chain != nullptr;) {
    setup_.matching_queue.recycle(*std::exchange(chain, chain->next));
  }
  waiting_.for_each([&](std::uint64_t number, const Waiting& waiting) {
    if (waiting.peer == peer.rank) waiting_.remove(number);
  });
  for (Transfer* chain = setup_.matching_queue.withdraw_all(peer.rank); chain != nullptr;) {
    Transfer& receive = *std::exchange(chain, chain->next);
    --posted_count_;
    fail(receive, peer.reason);
  }
}

}  // namespace tutti::transport::host
