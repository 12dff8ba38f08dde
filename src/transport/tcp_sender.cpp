// tcp_sender.cpp: sending.
// SPDX-License-Identifier: Apache-2.0
#include "transport/tcp_sender.hpp"

#include <algorithm>

namespace tutti::transport {

namespace {

std::span<const std::byte> payload_of(const Transfer& transfer) {
  return {transfer.from, static_cast<std::size_t>(transfer.envelope.bytes)};
}

}  // namespace

Link& Sender::open_link(Peer& peer, LinkKind kind, std::uint32_t stream) {
  const LinkPurpose purpose{
      .world = setup_.world, .from = setup_.rank, .to = peer.rank, .kind = kind, .stream = stream};
  Link& link = setup_.connections.open(purpose, peer.address);
  link.attached = true;
  return link;
}

void Sender::send(Peer& peer, Transfer& transfer) {
  transfer.state = Transfer::State::pending;
  if (peer.streams.empty()) peer.streams.push_back(&open_link(peer, LinkKind::stream, 0));
  const std::int64_t bytes = transfer.envelope.bytes;
  if (bytes <= setup_.options.eager_bytes_max && credit_cost(bytes) <= peer.credit_bytes) {
    send_eager(peer, transfer);
  } else {
    announce(peer, transfer);
  }
}

void Sender::send_eager(Peer& peer, Transfer& transfer) {
  peer.credit_bytes -= credit_cost(transfer.envelope.bytes);
  set_stage(transfer, Stage::sending);
  const std::span<const std::byte> payload = payload_of(transfer);
  setup_.connections.push(
      *peer.streams[0],
      {.head = encode_eager(transfer.envelope, payload, checksum()), .payload = payload, .transfer = &transfer});
}

void Sender::announce(Peer& peer, Transfer& transfer) {
  set_stage(transfer, Stage::announced);
  const std::int64_t bytes = transfer.envelope.bytes;
  const std::uint64_t id = outbound_.add({.transfer = &transfer, .peer = peer.rank, .unwritten_bytes = bytes});
  setup_.connections.push(*peer.streams[0],
                          {.head = encode_announce(transfer.envelope, id), .transfer = &transfer, .outbound = id});
  // Opened now, so that the bytes need not wait for the handshake once they are granted.
  while (peer.streams.size() <= static_cast<std::size_t>(setup_.options.streams)) {
    peer.streams.push_back(&open_link(peer, LinkKind::stream, static_cast<std::uint32_t>(peer.streams.size())));
  }
}

Sender::Outbound* Sender::find(const Peer& peer, std::uint64_t id) {
  Outbound* const outbound = outbound_.find(id);
  return outbound != nullptr && outbound->peer == peer.rank ? outbound : nullptr;
}

void Sender::cts_received(Peer& peer, const Numbers& numbers) {
  Outbound* const outbound = find(peer, numbers.first);
  if (outbound == nullptr) return;  // cancelled in the meantime: the abort is on its way
  outbound->cts = numbers.second;
  peer.cts_received.push_back(numbers.first);
  for (std::size_t i = 1; i < peer.streams.size(); ++i) setup_.connections.flush(*peer.streams[i]);
}

void Sender::dropped(Peer& peer, const Numbers& numbers) {
  Outbound* const outbound = find(peer, numbers.first);
  if (outbound == nullptr) return;
  finish(*outbound->transfer);
  outbound_.remove(numbers.first);
}

void Sender::credited(Peer& peer, const Numbers& numbers) {
  const std::int64_t bytes = static_cast<std::int64_t>(numbers.first);
  if (bytes < 0 || bytes > setup_.options.credit_bytes - peer.credit_bytes) {
    throw MalformedMessage("more credit came back than was spent; give all ranks the same transport options");
  }
  peer.credit_bytes += bytes;
}

bool Sender::refill(Peer& peer, Link& link) {
  while (!peer.cts_received.empty()) {
    const std::uint64_t id = peer.cts_received.front();
    Outbound* const outbound = find(peer, id);
    const std::int64_t bytes = outbound != nullptr ? outbound->transfer->envelope.bytes : 0;
    if (outbound == nullptr || outbound->next_offset == bytes) {
      peer.cts_received.erase(peer.cts_received.begin());
      continue;
    }
    const std::int64_t offset = outbound->next_offset;
    const std::int64_t chunk_bytes = std::min(setup_.options.chunk_bytes, bytes - offset);
    const std::span<const std::byte> chunk{outbound->transfer->from + offset, static_cast<std::size_t>(chunk_bytes)};
    outbound->next_offset += chunk_bytes;
    const Numbers numbers{.first = outbound->cts, .second = static_cast<std::uint64_t>(offset)};
    link.output.push({.head = encode_data(numbers, chunk, checksum()),
                      .payload = chunk,
                      .transfer = outbound->transfer,
                      .outbound = id});
    return true;
  }
  return false;
}

void Sender::frame_written(OutgoingFrame& frame) {
  if (frame.transfer == nullptr) return;
  if (stage_of(*frame.transfer) == Stage::sending) return finish(*frame.transfer);
  Outbound* const outbound = outbound_.find(frame.outbound);
  if (outbound == nullptr || frame.payload.empty()) return;  // the announcement itself
  outbound->unwritten_bytes -= static_cast<std::int64_t>(frame.payload.size());
  if (outbound->unwritten_bytes > 0) return;
  finish(*outbound->transfer);
  outbound_.remove(frame.outbound);
}

void Sender::cancel(Peer& peer, Transfer& transfer) {
  const bool eager = stage_of(transfer) == Stage::sending;
  const std::size_t vanished = peer.streams[0]->output.withdraw(transfer);
  if (eager) {
    if (vanished > 0) peer.credit_bytes += credit_cost(transfer.envelope.bytes);
    return;
  }
  const std::uint64_t id = number_of(transfer);
  take_memory_back(peer, transfer);
  outbound_.remove(id);
  // Unless not even the announcement went out.
  if (vanished == 0)
    setup_.connections.push(*peer.streams[0], {.head = encode_numbers(FrameType::abort, {.first = id})});
}

void Sender::take_memory_back(Peer& peer, const Transfer& transfer) {
  for (std::size_t i = 1; i < peer.streams.size(); ++i) peer.streams[i]->output.withdraw(transfer);
}

std::uint64_t Sender::number_of(const Transfer& transfer) {
  std::uint64_t found = 0;
  outbound_.for_each([&](std::uint64_t number, const Outbound& outbound) {
    if (outbound.transfer == &transfer) found = number;
  });
  return found;
}

void Sender::fail_all(Peer& peer) {
  for (Link* link : peer.streams) {
    link->output.for_each_transfer([&](Transfer& transfer) {
      if (transfer.handle != nullptr && stage_of(transfer) == Stage::sending) fail(transfer, peer.reason);
    });
    link->output.clear();
  }
  outbound_.for_each([&](std::uint64_t number, Outbound& outbound) {
    if (outbound.peer != peer.rank) return;
    fail(*outbound.transfer, peer.reason);
    outbound_.remove(number);
  });
  peer.cts_received.clear();
}

}  // namespace tutti::transport
