// tcp_sender.hpp: the sending half of the tcp transport: eager messages, announced ones, and their bytes in chunks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <tutti/transport.hpp>

#include "transport/handle_table.hpp"
#include "transport/tcp_frames.hpp"
#include "transport/tcp_options.hpp"
#include "transport/tcp_peer.hpp"

namespace tutti::transport {

class Sender {
 public:
  struct Setup {
    int rank;
    std::uint64_t world;
    const TcpOptions& options;
    ConnectionManager& connections;
  };
  explicit Sender(const Setup& setup) : setup_(setup) {}

  void send(Peer& peer, Transfer& transfer);
  void cancel(Peer& peer, Transfer& transfer);
  // All sends to a peer that is gone.
  void fail_all(Peer& peer);

  // Frames from the receiver.
  void cts_received(Peer& peer, const Numbers& numbers);
  void dropped(Peer& peer, const Numbers& numbers);
  void credited(Peer& peer, const Numbers& numbers);

  // Pushes the next chunk for this peer onto an idle bulk link.
  bool refill(Peer& peer, Link& link);
  void frame_written(OutgoingFrame& frame);

  [[nodiscard]] std::size_t outbound_count() const { return outbound_.count(); }
  Link& open_link(Peer& peer, LinkKind kind, std::uint32_t stream);

 private:
  // An announced message.
  struct Outbound {
    Transfer* transfer = nullptr;
    int peer = -1;
    std::uint64_t cts = 0;
    std::int64_t next_offset = 0;      // what was cut into chunks so far
    std::int64_t unwritten_bytes = 0;  // what the kernel has not taken yet
  };

  void send_eager(Peer& peer, Transfer& transfer);
  void announce(Peer& peer, Transfer& transfer);
  void take_memory_back(Peer& peer, const Transfer& transfer);
  [[nodiscard]] Outbound* find(const Peer& peer, std::uint64_t id);
  [[nodiscard]] std::uint64_t number_of(const Transfer& transfer);
  [[nodiscard]] Checksum checksum() const { return setup_.options.payload_checksums ? Checksum::on : Checksum::off; }

  Setup setup_;
  HandleTable<Outbound> outbound_;
};

}  // namespace tutti::transport
