// receiver.cpp: receiving.
// SPDX-License-Identifier: Apache-2.0
#include "messages/receiver.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "messages/message_form.hpp"

namespace tutti::messages {

// ---- what the caller asks for

void Receiver::recv(Transfer& receive) { post(receive, MatchingQueue::Place::last); }

void Receiver::post(Transfer& receive, MatchingQueue::Place place) {
  const int asked = receive.peer;
  const Envelope wanted = receive.envelope;
  for (;;) {
    set_stage(receive, Stage::posted);
    const MatchingQueue::Found found = setup_.queue.post(receive, place);
    if (found.fit == MatchingQueue::Fit::none) break;
    if (found.fit == MatchingQueue::Fit::refused) return discard(*found.message);
    if (found.fit == MatchingQueue::Fit::reserved) return setup_.queue.reserve(*found.message, receive);
    if (use(*found.message, receive, asked)) return;
    // Its sender has withdrawn it: look for the next one.
    receive.peer = asked;
    receive.envelope = wanted;
  }
  if (asked == any_peer) return;
  Peer& peer = peer_at(asked);
  if (peer.is_gone) {
    setup_.queue.withdraw(receive);
    return fail(receive, peer.reason);
  }
  count_posted(peer, 1);
}

// Before the receives that were posted after it. The receive of a collective has no other message to wait for: its group breaks.
void Receiver::withdrawn(Transfer& receive, int asked) {
  if (receive.envelope.channel == collective_channel) return fail(receive, announced_.taken_back(receive.peer));
  receive.peer = asked;
  post(receive, MatchingQueue::Place::first);
}

bool Receiver::try_recv(Peer& peer, Transfer& receive, int spins) {
  Frame frame;
  if (!peer.link->peek(peer.rank, spins, frame)) return false;
  if (frame.type != static_cast<std::uint8_t>(FrameType::brief) || frame.head.size() != sizeof(BriefHead)) return false;
  const auto head = head_of<BriefHead>(frame);
  const auto bytes = static_cast<std::int64_t>(frame.payload.size());
  const Envelope &last = peer.last_received, &wanted = receive.envelope;
  if (last.channel != point_to_point_channel || last.group != wanted.group || last.epoch != wanted.epoch ||
      (head.tag != wanted.tag && wanted.tag != every_tag) || bytes > peer.limits.eager_bytes_max ||
      (head.phase & has_lengths) != 0)
    return false;
  if (receive.room == nullptr && (bytes > wanted.bytes || last.signature.dtype != wanted.signature.dtype)) return false;
  const Envelope asked = receive.envelope;
  receive.envelope.signature = last.signature;
  apply(head, bytes, receive.envelope);
  if (receive.room != nullptr) {
    try {
      receive.to = receive.room->room_for(receive);
    } catch (const std::exception&) {  // recv() will say it
      receive.envelope = asked;
      return false;
    }
  }
  copy_bytes(receive.to, frame.payload.data(), bytes);
  receive.error.clear();
  finish(receive);
  peer.link->pop(peer.rank);
  peer.unreturned_bytes += credit_cost(bytes);
  return_credit(peer, bytes);
  return true;
}

void Receiver::offer_again(UnexpectedMessage& message) {
  const Peer& peer = peer_at(message.peer);
  const MatchingQueue::Match found = match(peer, message.envelope, message.shape ? *message.shape : MessageShape{});
  switch (found.fit) {
    case MatchingQueue::Fit::none: announcements_.put_back(message, peer_at(message.peer)); break;
    case MatchingQueue::Fit::reserved: setup_.queue.reserve(message, *found.receive); break;
    case MatchingQueue::Fit::refused: discard(message); break;
    case MatchingQueue::Fit::taken: {
      const int asked = found.from_anyone ? any_peer : peer.rank;
      if (!use(message, *found.receive, asked)) withdrawn(*found.receive, asked);
      break;
    }
  }
}

bool Receiver::use(UnexpectedMessage& message, Transfer& receive, int asked) {
  if (setup_.queue.use_again(message, &receive)) return true;
  if (message.peer == setup_.rank) {
    setup_.self.take(message, &receive);
    return true;
  }
  Peer& peer = peer_at(message.peer);
  if (message.announced) {
    const Announcement announcement = announcements_.take(message.id);
    setup_.queue.recycle(message);
    return announced_.begin(peer, receive, announcement, asked);
  }
  if (message.landing != 0) {
    set_object(receive, *landings_.find(message.landing));
    message.claimed = &receive;
    return true;
  }
  copy_bytes(receive.to, message.payload.get(), receive.envelope.bytes);
  finish(receive);
  return_credit(peer, message.envelope.bytes);
  setup_.queue.recycle(message);
  return true;
}

// The entry goes back to the matching queue now, or once the last of its bytes has come.
void Receiver::discard(UnexpectedMessage& message) {
  if (setup_.queue.use_again(message, nullptr)) return;
  if (message.peer == setup_.rank) return setup_.self.take(message, nullptr);
  Peer& peer = peer_at(message.peer);
  if (message.announced) {
    const std::uint64_t number = announcements_.take(message.id).message;
    setup_.sender.reply(peer, {.type = answer(takes_, message.envelope), .numbers = {.first = number}});
  } else if (message.landing != 0) {
    landings_.find(message.landing)->forgotten = true;
    return;
  } else {
    return_credit(peer, message.envelope.bytes);
  }
  setup_.queue.recycle(message);
}

void Receiver::cancel(Transfer& receive) {
  if (stage_of(receive) == Stage::posted) {
    setup_.queue.withdraw(receive);
    if (receive.peer != any_peer) count_posted(peer_at(receive.peer), -1);
    return;
  }
  if (stage_of(receive) == Stage::landing) {
    Landing& landing = object_of<Landing>(receive);
    if (landing.kind == Landing::Kind::receive) {
      landing.kind = Landing::Kind::discard;
      landing.receive = nullptr;
    } else {
      landing.message->claimed = nullptr;
      landing.forgotten = true;
    }
    return;
  }
  announced_.cancel(receive);
}

void Receiver::give_back(const Transfer& receive) {
  const auto [match, rest] = setup_.queue.give_back(receive);
  if (match.receive != nullptr && !match.from_anyone) count_posted(peer_at(receive.peer), -1);
  if (rest == nullptr) return;
  if (stage_of(receive) == Stage::landing) {
    Landing& landing = object_of<Landing>(receive);
    (landing.kind == Landing::Kind::receive ? landing.receive : landing.message->claimed) = rest;
    return;
  }
  announced_.redirect(receive, *rest);
}

// ---- whole messages

bool Receiver::is_wanted(const Peer& peer, const Envelope& envelope) {
  return is_taken(takes_, envelope) && listener_->arrived(peer.rank, envelope) == TransportListener::Verdict::keep;
}

MatchingQueue::Match Receiver::match(const Peer& peer, const Envelope& envelope, const MessageShape& shape) {
  const MatchingQueue::Match match = setup_.queue.match(peer.rank, envelope, shape);
  if (match.receive != nullptr && !match.from_anyone) count_posted(peer, -1);
  return match;
}

const Envelope& Receiver::eager_envelope(Peer& peer, const Frame& frame, std::int64_t payload_bytes) {
  Envelope& envelope = peer.last_received;
  if (frame.type == static_cast<std::uint8_t>(FrameType::full)) {
    envelope = head_of<Envelope>(frame);
    check(envelope);
    if (payload_bytes != envelope.bytes) throw MalformedMessage("a message's head and its payload differ in size");
    peer.knows_last_received = true;
    return envelope;
  }
  if (!peer.knows_last_received) throw MalformedMessage("a message's head refers to one that never came");
  apply(head_of<BriefHead>(frame), payload_bytes, envelope);
  return envelope;
}

void Receiver::spend_credit(Peer& peer, const Envelope& envelope) {
  peer.unreturned_bytes += credit_cost(envelope.bytes);
  if (peer.unreturned_bytes <= peer.limits.credit_bytes && envelope.bytes <= peer.limits.eager_bytes_max) return;
  throw MalformedMessage(
      fmt::format("it sent a message of {} bytes with a credit of {} bytes; give all ranks the same transport options",
                  envelope.bytes, peer.limits.credit_bytes));
}

// In large portions: a frame for every small message would cost more than the message.
void Receiver::return_credit(Peer& peer, std::int64_t bytes) {
  peer.used_up_bytes += credit_cost(bytes);
  if (peer.used_up_bytes < peer.limits.credit_bytes / 4) return;
  const std::int64_t returned = std::exchange(peer.used_up_bytes, 0);
  peer.unreturned_bytes -= returned;
  setup_.sender.reply(peer, {.type = FrameType::credit, .numbers = {.first = static_cast<std::uint64_t>(returned)}});
}

void Receiver::eager(Peer& peer, const Envelope& envelope, std::span<const std::byte> payload) {
  spend_credit(peer, envelope);
  const bool wanted = is_wanted(peer, envelope);
  const MatchingQueue::Match found = wanted ? match(peer, envelope, peer.shape) : MatchingQueue::Match{};
  if (found.fit == MatchingQueue::Fit::taken) [[likely]] {
    copy_bytes(found.receive->to, payload.data(), envelope.bytes);
    finish(*found.receive);
  } else if (wanted && found.fit != MatchingQueue::Fit::refused) {
    UnexpectedMessage& message = setup_.queue.keep(peer.rank, envelope, peer.shape, found.receive);
    copy_bytes(setup_.queue.make_room(message), payload.data(), envelope.bytes);
    held_bytes_peak_ = std::max(held_bytes_peak_, setup_.queue.held_bytes());
    return;
  }
  return_credit(peer, envelope.bytes);
}

// ---- frames

void Receiver::frame(Peer& peer, const Frame& frame) {
  if (peer.is_gone) [[unlikely]]
    return;
  const auto type = static_cast<FrameType>(frame.type);
  if (type == FrameType::brief || type == FrameType::full) [[likely]] {
    const auto bytes = static_cast<std::int64_t>(frame.payload.size());
    return eager(peer, eager_envelope(peer, frame, bytes), frame.payload);
  }
  if (!frame.payload.empty()) {
    const std::uint64_t number = frame_begins(peer, frame, static_cast<std::int64_t>(frame.payload.size()));
    const Landing& landing = *landings_.find(number);
    if (landing.kind == Landing::Kind::fragment) announced_.put(landing.fragment, frame.payload);
    return frame_ends(number);
  }
  switch (type) {
    case FrameType::rts: return rts(peer, frame);
    case FrameType::cts: return setup_.sender.cts(peer, head_of<Numbers>(frame));
    case FrameType::fin: return setup_.sender.fin(peer, head_of<Numbers>(frame).first);
    case FrameType::credit: return setup_.sender.credit(peer, head_of<Numbers>(frame).first);
    case FrameType::cancel:
      announcements_.cancelled(peer, head_of<Numbers>(frame).first, announced_.taken_back(peer.rank));
      return announced_.cancelled(peer, head_of<Numbers>(frame).first);
    case FrameType::shape: peer.shape = shape_told(frame.head); return;
    case FrameType::ask_back: return announcements_.asked_back(peer, head_of<Numbers>(frame).first);
    case FrameType::given_back:
      return setup_.sender.refused(peer, head_of<Numbers>(frame).first, Transfer::Refusal::asked_back);
    case FrameType::refused:
      return setup_.sender.refused(peer, head_of<Numbers>(frame).first, Transfer::Refusal::receiver_left);
    default: throw MalformedMessage(fmt::format("there is no frame of type {} without a payload", frame.type));
  }
}

std::uint64_t Receiver::frame_begins(Peer& peer, const Frame& frame, std::int64_t payload_bytes) {
  const auto type = static_cast<FrameType>(frame.type);
  Landing landing{.peer = peer.rank, .bytes = payload_bytes};
  if (peer.is_gone) return landings_.add(landing);
  if (type == FrameType::fragment) {
    landing.fragment = head_of<Numbers>(frame);
    if (announced_.expects(peer, landing.fragment, payload_bytes)) landing.kind = Landing::Kind::fragment;
    count(peer, 1);
    return landings_.add(landing);
  }
  if (type != FrameType::brief && type != FrameType::full) {
    throw MalformedMessage(fmt::format("a frame of type {} has a payload of {} bytes", frame.type, payload_bytes));
  }
  const Envelope envelope = eager_envelope(peer, frame, payload_bytes);
  spend_credit(peer, envelope);
  landing.costs_credit = true;
  const bool wanted = is_wanted(peer, envelope);
  const MatchingQueue::Match found = wanted ? match(peer, envelope, peer.shape) : MatchingQueue::Match{};
  if (found.fit == MatchingQueue::Fit::taken) {
    landing.kind = Landing::Kind::receive;
    landing.receive = found.receive;
  } else if (wanted && found.fit != MatchingQueue::Fit::refused) {
    landing.kind = Landing::Kind::unexpected;
    landing.message = &setup_.queue.keep(peer.rank, envelope, peer.shape, found.receive);
    setup_.queue.make_room(*landing.message);
    held_bytes_peak_ = std::max(held_bytes_peak_, setup_.queue.held_bytes());
  }
  count(peer, 1);
  const std::uint64_t number = landings_.add(landing);
  if (landing.receive != nullptr) set_object(*landing.receive, *landings_.find(number));
  if (landing.message != nullptr) landing.message->landing = number;
  return number;
}

// Nothing is found if another link has lost the peer in the meantime.
std::byte* Receiver::landing(std::uint64_t number) {
  const Landing* const found = landings_.find(number);
  if (found == nullptr) return nullptr;
  const Landing& landing = *found;
  switch (landing.kind) {
    case Landing::Kind::receive: return landing.receive->to;
    case Landing::Kind::unexpected: return landing.message->payload.get();
    case Landing::Kind::fragment: return announced_.place_of(landing.fragment);
    case Landing::Kind::discard: break;
  }
  return nullptr;
}

void Receiver::frame_ends(std::uint64_t number) {
  const Landing* const found = landings_.find(number);
  if (found == nullptr) return;
  const Landing landing = *found;
  Peer& peer = peer_at(landing.peer);
  landings_.remove(number);
  if (peer.is_gone) return;
  count(peer, -1);
  switch (landing.kind) {
    case Landing::Kind::receive: finish(*landing.receive); break;
    case Landing::Kind::discard: break;
    case Landing::Kind::unexpected: {
      UnexpectedMessage& message = *landing.message;
      message.landing = 0;
      Transfer* const receive = std::exchange(message.claimed, nullptr);
      if (landing.forgotten) return discard(message);
      if (receive != nullptr)
        static_cast<void>(use(message, *receive, receive->peer));  // a message that is here is not taken back
      return;
    }
    case Landing::Kind::fragment: return announced_.fragment_came(landing.fragment.first, landing.bytes);
  }
  if (landing.costs_credit) return_credit(peer, landing.bytes);
}

// ---- announced messages

void Receiver::rts(Peer& peer, const Frame& frame) {
  const auto head = head_of<RtsHead>(frame);
  const Envelope& envelope = head.envelope;
  check(envelope);
  Announcement announcement{.peer = peer.rank, .message = head.message};
  announcement.key.size = frame.head.size() - sizeof head;
  if (announcement.key.size > RemoteKey::bytes_max) throw MalformedMessage("a remote key is too long");
  std::memcpy(announcement.key.bytes.data(), frame.head.data() + sizeof head, announcement.key.size);
  // Taken back before anyone saw it.
  if (announcement.key.size > 0 && !peer.link->is_exposed(peer.rank, announcement.key, envelope.bytes)) return;
  if (takes_ == Takes::nothing) return;
  if (!is_wanted(peer, envelope))
    return setup_.sender.reply(peer, {.type = answer(takes_, envelope), .numbers = {.first = head.message}});
  const MatchingQueue::Match found = match(peer, envelope, peer.shape);
  switch (found.fit) {
    case MatchingQueue::Fit::taken:
      if (const int asked = found.from_anyone ? any_peer : peer.rank;
          !announced_.begin(peer, *found.receive, announcement, asked))
        withdrawn(*found.receive, asked);
      break;
    case MatchingQueue::Fit::refused: setup_.sender.reply_fin(peer, head.message); break;
    case MatchingQueue::Fit::none:
    case MatchingQueue::Fit::reserved: {
      UnexpectedMessage& message = setup_.queue.keep(peer.rank, envelope, peer.shape, found.receive);
      message.announced = true;
      message.id = announcements_.add(announcement);
      break;
    }
  }
}

// ---- a peer that is gone

void Receiver::fail_all(Peer& peer) {
  for (Transfer* chain = setup_.queue.withdraw_all(peer.rank); chain != nullptr;) {
    count_posted(peer, -1);
    fail(*std::exchange(chain, chain->next), peer.reason);
  }
  announced_.fail_all(peer);
  landings_.for_each([&](std::uint64_t number, const Landing& landing) {
    if (landing.peer != peer.rank) return;
    if (landing.receive != nullptr) fail(*landing.receive, peer.reason);
    if (UnexpectedMessage* const message = landing.message) {
      if (message->claimed != nullptr) {
        fail(*message->claimed, peer.reason);
      } else if (message->reserved_by != nullptr) {
        setup_.queue.lose(*message, peer.reason, Transfer::Refusal::none);
      } else if (!landing.forgotten) {
        setup_.queue.forget(*message);
      }
      setup_.queue.recycle(*message);
    }
    landings_.remove(number);
    count(peer, -1);
  });
  announcements_.fail_all(peer);
}

}  // namespace tutti::messages
