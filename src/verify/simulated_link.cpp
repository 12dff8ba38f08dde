// simulated_link.cpp: the network card of one simulated rank, and how it reads another one's memory.
// SPDX-License-Identifier: Apache-2.0
#include "verify/simulated_link.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <tutti/error.hpp>

namespace tutti::link {

namespace {

constexpr std::int64_t header_bytes = 64;
// Frames per peer that the card takes before it has no room.
constexpr int messages_max = 12, fragments_max = 2;
// A larger payload comes in after its head, as over TCP.
constexpr std::size_t whole_payload_bytes_max = 512;

std::uint64_t number_of(const RemoteKey& key) {
  std::uint64_t number = 0;
  std::memcpy(&number, key.bytes.data(), sizeof number);
  return number;
}

}  // namespace

Link::Limits SimulatedLink::limits() const {
  return {.eager_bytes_max = options_.eager_bytes,
          .credit_bytes = std::max(options_.credit_bytes, 2 * credit_cost(options_.eager_bytes)),
          .fragment_bytes_max = options_.segment_bytes,
          .bulk_has_own_channel = true};
}

// ---- the network card

Link::Taken SimulatedLink::send(int peer, FrameOrder order, const Frame& frame, void* owner) {
  if (is_gone(peer)) return Taken::copied;
  Packet packet{.kind = Packet::Kind::frame,
                .from = rank_,
                .to = peer,
                .type = frame.type,
                .head = {frame.head.begin(), frame.head.end()}};
  if (order == FrameOrder::reply) {
    host_->network().carry(std::move(packet));
    return Taken::copied;
  }
  int& waiting = waiting_counts_[{peer, order}];
  if (waiting == (order == FrameOrder::bulk ? fragments_max : messages_max)) return Taken::no_room;
  ++waiting;
  host_->network().open(rank_, peer);
  departures_.push_back({.packet = std::move(packet), .payload = frame.payload, .order = order, .owner = owner});
  start_card();
  return Taken::queued;
}

// The frame that the card is busy with stays in its queue, so that the next one does not leave early; departed() throws it away.
std::size_t SimulatedLink::withdraw(int /*peer*/, const void* owner) {
  std::size_t vanished = 0;
  for (Departure& departure : departures_) {
    if (departure.owner != owner || departure.withdrawn) continue;
    departure.withdrawn = true;
    departure.payload = {};
    ++vanished;
  }
  std::erase_if(sent_, [owner](const Sent& sent) { return sent.owner == owner; });
  return vanished;
}

void SimulatedLink::start_card() {
  while (!card_busy_ && !departures_.empty()) {
    const Departure& first = departures_.front();
    if (first.withdrawn) {
      --waiting_counts_[{first.packet.to, first.order}];
      departures_.pop_front();
      continue;
    }
    card_busy_ = true;
    const auto bytes = header_bytes + static_cast<std::int64_t>(first.payload.size());
    const Duration busy = host_->network().sending_time(rank_, first.packet.to, bytes);
    host_->events().at(host_->events().now() + busy, [this] { departed(); });
  }
}

// The first frame has left: only now is the caller's memory read. There is room for another one.
void SimulatedLink::departed() {
  card_busy_ = false;
  if (!host_->alive(rank_) || departures_.empty()) return;
  Departure departure = std::move(departures_.front());
  departures_.pop_front();
  --waiting_counts_[{departure.packet.to, departure.order}];
  host_->make_ready(rank_);
  start_card();
  if (departure.withdrawn) return;
  departure.packet.payload.assign(departure.payload.begin(), departure.payload.end());
  if (departure.owner != nullptr)
    sent_.push_back({departure.owner, static_cast<std::int64_t>(departure.payload.size())});
  host_->network().carry(std::move(departure.packet));
}

void SimulatedLink::post(int peer, std::span<const std::byte> message) {
  if (is_gone(peer)) return;
  host_->network().carry(
      {.kind = Packet::Kind::control, .from = rank_, .to = peer, .payload = {message.begin(), message.end()}});
}

void SimulatedLink::attach(int peer) {
  if (!is_gone(peer)) host_->network().open(rank_, peer);
}

bool SimulatedLink::wait(TimePoint until, Transport::Events) {
  host_->make_ready_at(rank_, until);
  return false;
}

void SimulatedLink::close(TimePoint) {
  if (std::exchange(closed_, true)) return;
  sent_.clear();
  departures_.clear();
  host_->network().close(rank_);
}

// ---- what comes in

void SimulatedLink::deliver(Packet packet) {
  inbox_.push_back(std::move(packet));
  host_->make_ready(rank_);
}

bool SimulatedLink::poll() {
  if (closed_ || !host_->may_run(rank_)) return false;
  bool moved = !sent_.empty();
  for (const Sent& sent : std::exchange(sent_, {})) listener_->sent(sent.owner, sent.bytes);
  while (!inbox_.empty() && !closed_) {  // what a listener does may close this link
    Packet packet = std::move(inbox_.front());
    inbox_.pop_front();
    handle(packet);
    moved = true;
  }
  return moved;
}

void SimulatedLink::handle(Packet& packet) {
  const int peer = packet.from;
  if (lost_.contains(peer)) return;  // nothing is heard of a peer after its loss
  heard_.insert(peer);
  switch (packet.kind) {
    case Packet::Kind::frame: return take_frame(packet);
    case Packet::Kind::control: return listener_->control(peer, packet.payload);
    case Packet::Kind::goodbye: drop_departures(peer); return listener_->parted(peer);
    case Packet::Kind::refused:
    case Packet::Kind::lost: break;
  }
  if (gone_.contains(peer)) return;  // it said goodbye before
  lose(peer);
  if (packet.kind == Packet::Kind::refused) return listener_->unreachable(peer, packet.reason);
  listener_->lost(peer, packet.reason);
}

void SimulatedLink::lose(int peer) {
  lost_.insert(peer);
  drop_departures(peer);
}

void SimulatedLink::drop_departures(int peer) {
  gone_.insert(peer);
  for (Departure& departure : departures_) {
    if (departure.packet.to != peer) continue;
    departure.withdrawn = true;
    departure.payload = {};
  }
}

void SimulatedLink::take_frame(const Packet& packet) try {
  if (packet.payload.size() <= whole_payload_bytes_max) {
    return listener_->frame(packet.from, {.type = packet.type, .head = packet.head, .payload = packet.payload});
  }
  const std::uint64_t number = listener_->frame_begins(packet.from, {.type = packet.type, .head = packet.head},
                                                       static_cast<std::int64_t>(packet.payload.size()));
  if (std::byte* const to = listener_->landing(number)) std::ranges::copy(packet.payload, to);
  listener_->frame_ends(number);
} catch (const Error& error) {
  lose(packet.from);
  listener_->lost(packet.from, error.what());
}

// ---- reading a peer's memory

RemoteKey SimulatedLink::expose(std::span<const std::byte> memory) {
  if (!options_.reads_inside_node || options_.ranks_per_node < 2) return {};
  exposed_[++last_key_] = memory;
  RemoteKey key{.size = sizeof last_key_};
  std::memcpy(key.bytes.data(), &last_key_, sizeof last_key_);
  return key;
}

void SimulatedLink::revoke(const RemoteKey& key) { exposed_.erase(number_of(key)); }

bool SimulatedLink::can_get(int peer, const RemoteKey&, std::int64_t) { return is_same_node(peer); }

// As over shared memory, a revoked key is seen at once; between nodes it is not.
bool SimulatedLink::is_exposed(int peer, const RemoteKey& key, std::int64_t) {
  return !is_same_node(peer) || host_->link(peer).exposed_.contains(number_of(key));
}

GetStatus SimulatedLink::get(RemoteGet& get, std::int64_t bytes_max) {
  if (get.handle == nullptr) {
    start_read(get, bytes_max);
    return GetStatus::moving;
  }
  const auto found = reads_.find(reinterpret_cast<std::uintptr_t>(get.handle));
  Read& read = found->second;
  if (!read.has_come) return GetStatus::moving;
  if (read.owner_died) return GetStatus::peer_gone;
  const bool was_exposed = read.was_exposed;
  std::ranges::copy(read.bytes, get.to + get.done_bytes);
  get.done_bytes += static_cast<std::int64_t>(read.bytes.size());
  cancel_get(get);
  if (get.done_bytes == get.bytes) return was_exposed ? GetStatus::complete : GetStatus::withdrawn;
  start_read(get, bytes_max);
  return GetStatus::moving;
}

void SimulatedLink::start_read(RemoteGet& get, std::int64_t bytes_max) {
  const std::int64_t bytes = std::min({options_.segment_bytes, get.bytes - get.done_bytes, bytes_max});
  const std::uint64_t number = ++last_read_;
  reads_[number];
  get.handle = reinterpret_cast<void*>(static_cast<std::uintptr_t>(number));
  const Duration time = host_->network().sending_time(get.peer, rank_, header_bytes + bytes);
  host_->events().at(host_->events().now() + time,
                     [this, number, bytes, peer = get.peer, key = number_of(get.key), offset = get.done_bytes] {
                       finish_read({.number = number, .peer = peer, .key = key, .offset = offset, .bytes = bytes});
                     });
}

// Memory that was revoked gives other bytes; only the end of the read notices.
void SimulatedLink::finish_read(const Segment& segment) {
  const auto found = reads_.find(segment.number);
  if (found == reads_.end() || !host_->alive(rank_)) return;  // cancelled
  Read& read = found->second;
  read.has_come = true;
  read.owner_died = !host_->alive(segment.peer);
  read.bytes.resize(static_cast<std::size_t>(segment.bytes), std::byte{0xEE});
  const auto& exposed = host_->link(segment.peer).exposed_;
  const auto memory = exposed.find(segment.key);
  read.was_exposed = memory != exposed.end();
  if (read.was_exposed && !read.owner_died) {
    const auto part = memory->second.subspan(static_cast<std::size_t>(segment.offset), read.bytes.size());
    std::ranges::copy(part, read.bytes.begin());
  }
  host_->make_ready(rank_);
}

void SimulatedLink::cancel_get(RemoteGet& get) {
  reads_.erase(reinterpret_cast<std::uintptr_t>(get.handle));
  get.handle = nullptr;
}

}  // namespace tutti::link
