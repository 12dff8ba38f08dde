// ring_link.cpp: frames through rings in shared memory, and reading a peer's memory.
// SPDX-License-Identifier: Apache-2.0
#include "link/ring_link.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include <tutti/error.hpp>

#include "shm/doorbell.hpp"

namespace tutti::link {

namespace {

constexpr int records_per_read = 256;  // so that no peer starves the others
// Rings that do not exist yet are looked for once in so many polls, unless there are so few that it does not matter.
constexpr unsigned polls_per_look = 16;
constexpr std::size_t few = 4;
constexpr std::size_t cell_payload_bytes_min = 1 << 10;  // shorter ones cost less beside their heads
constexpr int drain_rounds_max = 64;  // a peer that goes on sending while it goes is not listened to for ever

std::byte* put(std::byte* place, std::span<const std::byte> bytes) {
  if (!bytes.empty()) std::memcpy(place, bytes.data(), bytes.size());
  return place + bytes.size();
}

// Heads are a few words: a call of memcpy would take longer.
std::byte* put_head(std::byte* place, std::span<const std::byte> head) {
  std::size_t at = 0;
  for (; at + sizeof(std::uint64_t) <= head.size(); at += sizeof(std::uint64_t)) {
    std::memcpy(place + at, head.data() + at, sizeof(std::uint64_t));
  }
  return put(place + at, head.subspan(at));
}

}  // namespace

std::uint64_t lay_out_control_block(shm::Arena& arena, int world_size) {
  const auto count = static_cast<std::size_t>(world_size);
  auto* const entries = reinterpret_cast<RingControl*>(arena.allocate(count * sizeof(RingControl), 4096));
  for (std::size_t i = 0; i < count; ++i) new (&entries[i]) RingControl{};
  return arena.offset_of(entries);
}

RingLink::RingLink(RingSetup setup)
    : options_((check(setup.options), setup.options)),
      local_peers_(setup.local_peers),
      memory_(options_, local_peers_),
      cells_(options_, local_peers_, setup.control_blocks.size()),
      own_doorbell_(&local_peers_->arena().header()),
      peers_(setup.control_blocks.size()) {
  const int own = local_peers_->rank();
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    peers_[i].rank = static_cast<int>(i);
    if (peers_[i].rank != own && setup.control_blocks[i] != no_control_block_offset) connect(peers_[i], setup);
  }
}

// In a forked child the arena is still the parent's.
RingLink::~RingLink() {
  if (!abandoned_) memory_.revoke_all();
}

Link::Limits RingLink::limits() const {
  return {
      .eager_bytes_max = options_.eager_bytes_max,
      .credit_bytes = options_.credit_bytes,
      .fragment_bytes_max = std::min(options_.fragment_bytes_max, static_cast<std::int64_t>(options_.ring_bytes) / 8),
      .get_bytes_per_poll = options_.get_bytes_per_poll};
}

void RingLink::connect(RingPeer& peer, const RingSetup& setup) {
  const int own = local_peers_->rank();
  const auto entry = [&](int owner, int reader) {
    const std::uint64_t offset = setup.control_blocks[static_cast<std::size_t>(owner)];
    if (offset % alignof(RingControl) != 0) {
      throw InvalidArgument(
          fmt::format("rank {}: the control block of rank {} at {} is misplaced", own, owner, offset));
    }
    const auto at = offset + static_cast<std::uint64_t>(reader) * sizeof(RingControl);
    return reinterpret_cast<RingControl*>(local_peers_->at(owner, at, sizeof(RingControl)));
  };
  peer.doorbell = &local_peers_->header(peer.rank);
  peer.ours = entry(own, peer.rank);
  peer.theirs = entry(peer.rank, own);
  cells_.connect(peer.rank, *peer.ours, *peer.theirs);
  unconnected_.push_back(&peer);
}

// ---- sending

void RingLink::make_ring(RingPeer& peer) {
  shm::Arena& arena = local_peers_->arena();
  std::byte* const memory = arena.allocate(options_.ring_bytes, 4096);
  peer.out = RingWriter(memory, options_.ring_bytes / line_bytes, peer.theirs->read_lines);
  peer.ours->ring_offset.store(arena.offset_of(memory), std::memory_order_release);
}

[[gnu::always_inline]] inline bool RingLink::write(RingPeer& peer, const Frame& frame) {
  const std::size_t bytes = frame.head.size() + frame.payload.size();
  std::byte* const place = peer.out.begin(bytes);
  if (place == nullptr) return false;
  put(put_head(place, frame.head), frame.payload);
  peer.out.publish({.kind = RecordKind::frame,
                    .type = frame.type,
                    .head_bytes = static_cast<std::uint8_t>(frame.head.size()),
                    .bytes = static_cast<std::uint32_t>(bytes)});
  return true;
}

Link::Taken RingLink::send(int rank, FrameOrder order, const Frame& frame, void* /*owner*/) {
  RingPeer& peer = peer_at(rank);
  if (!peer.out.exists()) [[unlikely]]
    make_ring(peer);
  const std::size_t bytes = frame.payload.size();
  const bool whole = bytes <= static_cast<std::size_t>(options_.chunk_bytes) || order == FrameOrder::bulk;
  // Fragments follow each other, so that both sides copy at once in any case. A message on its own is cut, as in the ring.
  const std::size_t piece_bytes = order == FrameOrder::bulk
                                      ? cells_.bytes()
                                      : std::min(cells_.bytes(), static_cast<std::size_t>(options_.chunk_bytes));
  const std::size_t kept = order == FrameOrder::bulk ? options_.cells - options_.bulk_cells : 0;
  const bool in_cells = bytes >= cell_payload_bytes_min && cells_.has((bytes + piece_bytes - 1) / piece_bytes + kept);
  if (!(in_cells ? write_in_cells(peer, frame, piece_bytes)
        : whole  ? write(peer, frame)
                 : write_in_chunks(peer, frame)))
    return Taken::no_room;
  shm::notify(*peer.doorbell);
  peer.out.zero_ahead();
  return Taken::copied;
}

// All chunks or none: a ring never ends in the middle of a frame.
bool RingLink::write_in_chunks(RingPeer& peer, const Frame& frame) {
  const auto chunk = static_cast<std::size_t>(options_.chunk_bytes);
  const auto total = static_cast<std::uint64_t>(frame.payload.size());
  const std::size_t first_bytes = sizeof total + frame.head.size() + chunk;
  const std::uint64_t record_lines = lines_of(first_bytes);
  if (!peer.out.has_room(record_lines * (frame.payload.size() / chunk + 1), record_lines)) return false;
  std::byte* const place = peer.out.begin(first_bytes);
  put(put(put(place, std::as_bytes(std::span(&total, 1))), frame.head), frame.payload.first(chunk));
  peer.out.publish({.kind = RecordKind::first,
                    .type = frame.type,
                    .head_bytes = static_cast<std::uint8_t>(frame.head.size()),
                    .bytes = static_cast<std::uint32_t>(first_bytes)});
  shm::notify(*peer.doorbell);
  for (std::size_t at = chunk; at < frame.payload.size(); at += chunk) {
    const std::size_t bytes = std::min(chunk, frame.payload.size() - at);
    put(peer.out.begin(bytes), frame.payload.subspan(at, bytes));
    peer.out.publish({.kind = RecordKind::more, .bytes = static_cast<std::uint32_t>(bytes)});
  }
  return true;
}

// The ring carries the names of the cells. All of them or none, as above.
bool RingLink::write_in_cells(RingPeer& peer, const Frame& frame, std::size_t piece_bytes) {
  const std::uint64_t total = frame.payload.size();
  const std::size_t pieces = (frame.payload.size() + piece_bytes - 1) / piece_bytes;
  const std::uint64_t record_lines = lines_of(sizeof total + frame.head.size() + sizeof(CellName));
  if (!peer.out.has_room(record_lines * pieces, record_lines)) return false;
  for (std::size_t at = 0; at < frame.payload.size(); at += piece_bytes) {
    const auto part = frame.payload.subspan(at, std::min(piece_bytes, frame.payload.size() - at));
    Cells::Cell cell = cells_.take();
    put(cell.memory, part);
    cell.name.payload_bytes = part.size();
    const RecordKind kind = pieces == 1 ? RecordKind::frame : at == 0 ? RecordKind::first : RecordKind::more;
    const auto head = at == 0 ? frame.head : std::span<const std::byte>();
    const std::size_t total_bytes = kind == RecordKind::first ? sizeof total : 0;
    const std::size_t body_bytes = total_bytes + head.size() + sizeof cell.name;
    std::byte* const place = peer.out.begin(body_bytes);
    put_head(put_head(put_head(place, std::as_bytes(std::span(&total, 1)).first(total_bytes)), head),
             std::as_bytes(std::span(&cell.name, 1)));
    peer.out.publish({.kind = kind,
                      .in_cell = true,
                      .type = frame.type,
                      .head_bytes = static_cast<std::uint8_t>(head.size()),
                      .bytes = static_cast<std::uint32_t>(body_bytes)});
    if (kind == RecordKind::first) shm::notify(*peer.doorbell);
  }
  return true;
}

// ---- reading rings

bool RingLink::is_last_poll_before_sleep() const { return own_doorbell_->asleep.load(std::memory_order_relaxed) != 0; }

bool RingLink::poll() {
  bool moved = false;
  for (std::size_t i = 0; i < connected_.size();) {
    RingPeer& peer = *connected_[i];
    if (!peer.in.has_news()) [[likely]] {
      ++i;
      continue;
    }
    moved = true;
    if (read_or_fail(peer)) ++i;  // otherwise it is in the list no more
  }
  if (!unconnected_.empty() &&
      (unconnected_.size() <= few || ++polls_ % polls_per_look == 0 || is_last_poll_before_sleep())) {
    look_for_rings();
  }
  return moved;
}

void RingLink::look_for_rings() {
  for (std::size_t i = 0; i < unconnected_.size();) {
    RingPeer& peer = *unconnected_[i];
    try {
      if (!discover(peer)) {
        ++i;
        continue;
      }
    } catch (const Error& error) {
      fail(peer, error.what());
      continue;
    }
    unconnected_.erase(unconnected_.begin() + static_cast<std::ptrdiff_t>(i));
    connected_.push_back(&peer);
    static_cast<void>(read_or_fail(peer));
  }
}

// Opens the peer's ring to this rank, if there is one by now.
bool RingLink::discover(RingPeer& peer) {
  const std::uint64_t offset = peer.theirs->ring_offset.load(std::memory_order_acquire);
  if (offset == 0) return false;
  if (offset % line_bytes != 0) throw MalformedMessage("its ring in shared memory begins between two lines");
  peer.in =
      RingReader(in_arena(*local_peers_, peer.rank, offset, options_.ring_bytes), options_.ring_bytes / line_bytes);
  return true;
}

// False if the peer turned out to write nonsense, and is reported lost.
bool RingLink::read_or_fail(RingPeer& peer) try {
  static_cast<void>(read(peer));
  return !peer.is_gone;
} catch (const Error& error) {
  fail(peer, error.what());
  return false;
}

bool RingLink::read(RingPeer& peer) {
  int count = 0;
  for (; count < records_per_read && !peer.is_gone; ++count) {
    const Record record = peer.in.next();
    if (record.kind() == RecordKind::none) break;
    // While its cell is copied, the name of the next one comes closer.
    if (record.in_cell() && record.kind() != RecordKind::frame) __builtin_prefetch(record.body + line_bytes);
    take(peer, record);
    peer.in.release(record);
  }
  if (count == 0) return false;
  tell_progress(peer);
  return true;
}

void RingLink::take(RingPeer& peer, const Record& record) {
  if (peer.is_landing != (record.kind() == RecordKind::more)) {
    throw MalformedMessage("a frame in shared memory is interrupted by another one");
  }
  const std::size_t head_bytes = record.head_bytes();
  const bool is_first = record.kind() == RecordKind::first;
  const Part part = part_of(record, head_bytes + (is_first ? sizeof(std::int64_t) : 0));
  if (record.kind() == RecordKind::frame) [[likely]] {
    listener_->frame(peer.rank, {.type = record.type(), .head = {record.body, head_bytes}, .payload = part.payload});
  } else {
    if (is_first) begin_landing(peer, record);
    land(peer, part.payload);
  }
  if (part.cell.memory != nullptr) cells_.hold(part.cell);
}

inline RingLink::Part RingLink::part_of(const Record& record, std::size_t ahead_bytes) const {
  const std::size_t name_bytes = record.in_cell() ? sizeof(CellName) : 0;
  if (record.bytes() < ahead_bytes + name_bytes) [[unlikely]]
    throw MalformedMessage("a record in shared memory is too short");
  if (!record.in_cell()) [[likely]]
    return {.payload = {record.body + ahead_bytes, record.bytes() - ahead_bytes}};
  CellName name;
  std::memcpy(&name, record.body + ahead_bytes, sizeof name);
  const Cells::Cell cell = cells_.named(name);
  return {.payload = {cell.memory, name.payload_bytes}, .cell = cell};
}

// A frame that comes in several records: the first of them.
void RingLink::begin_landing(RingPeer& peer, const Record& record) {
  std::int64_t total = 0;
  std::memcpy(&total, record.body, sizeof total);
  if (total < 0) throw MalformedMessage(fmt::format("a frame in shared memory claims {} bytes", total));
  peer.landing = listener_->frame_begins(
      peer.rank, {.type = record.type(), .head = {record.body + sizeof total, record.head_bytes()}}, total);
  peer.is_landing = true;
  peer.landing_bytes = total;
  peer.landed_bytes = 0;
}

void RingLink::land(RingPeer& peer, std::span<const std::byte> payload) {
  const auto bytes = static_cast<std::int64_t>(payload.size());
  if (bytes > peer.landing_bytes - peer.landed_bytes) {
    throw MalformedMessage("a frame in shared memory is longer than its first record says");
  }
  std::byte* const to = listener_->landing(peer.landing);
  if (to != nullptr && bytes > 0) std::memcpy(to + peer.landed_bytes, payload.data(), payload.size());
  peer.landed_bytes += bytes;
  if (peer.landed_bytes < peer.landing_bytes) return;
  peer.is_landing = false;
  listener_->frame_ends(peer.landing);
}

// Seldom: the line crosses to the sender, which looks at it only when its ring seems full.
void RingLink::tell_progress(RingPeer& peer) {
  if (peer.in.read_lines() - peer.read_lines_told < peer.in.lines() / 8) return;
  peer.read_lines_told = peer.in.read_lines();
  peer.ours->read_lines.store(peer.read_lines_told, std::memory_order_release);
  shm::notify(*peer.doorbell);
}

bool RingLink::peek(int rank, int spins, Frame& frame) {
  RingPeer& peer = peer_at(rank);
  if (!peer.in.exists() || peer.is_gone) return false;
  while (!peer.in.has_news()) {
    if (--spins <= 0) return false;
    shm::pause();
  }
  const Record& record = peer.peeked;
  Part part;
  try {
    peer.peeked = peer.in.next();
    if (record.kind() != RecordKind::frame || peer.is_landing) return false;
    part = part_of(record, record.head_bytes());
  } catch (const Error& error) {
    fail(peer, error.what());
    return false;
  }
  peer.peeked_cell = part.cell;
  frame = {.type = record.type(), .head = {record.body, record.head_bytes()}, .payload = part.payload};
  return true;
}

void RingLink::pop(int rank) {
  RingPeer& peer = peer_at(rank);
  peer.in.release(peer.peeked);
  if (peer.peeked_cell.memory != nullptr) cells_.hold(std::exchange(peer.peeked_cell, {}));
  tell_progress(peer);
}

void RingLink::drain(int rank) {
  RingPeer& peer = peer_at(rank);
  if (peer.is_gone) return;
  try {
    if (!peer.in.exists() && !discover(peer)) return;
    for (int round = 0; round < drain_rounds_max && read(peer); ++round) {}
  } catch (const Error&) {  // it is gone anyway, and why is known
  }
}

void RingLink::disconnect(int rank) {
  RingPeer& peer = peer_at(rank);
  peer.is_gone = true;
  std::erase(connected_, &peer);
  std::erase(unconnected_, &peer);
}

void RingLink::fail(RingPeer& peer, const std::string& reason) {
  disconnect(peer.rank);
  listener_->lost(peer.rank, reason);
}

}  // namespace tutti::link
