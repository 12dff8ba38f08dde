// simulated_network.hpp: links between simulated ranks: how long a packet takes, and whether it arrives at all.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include <tutti/clock.hpp>

#include "base/hash.hpp"
#include "base/random.hpp"
#include "verify/simulated_time.hpp"

namespace tutti::link {

struct LinkCost {
  Duration latency = std::chrono::microseconds(20);
  double bytes_per_second = 1e9;
};

// The simulated machine. Defaults: one rank per node, a 10 Gbit/s network.
struct SimulationOptions {
  int size = 2;
  std::uint64_t seed = 1;
  int ranks_per_node = 1;
  LinkCost inside_node{std::chrono::microseconds(1), 10e9};
  LinkCost between_nodes{std::chrono::microseconds(20), 1.25e9};
  double jitter = 0.5;                                // up to this share of the latency on top, drawn per packet
  Duration detection = std::chrono::milliseconds(1);  // from a broken link to its ends' knowledge; up to twice this
  std::int64_t eager_bytes = 1024;                    // larger messages are announced and wait for their receive
  std::int64_t credit_bytes = 16 * 1024;              // unexpected messages that one sender may have at one receiver
  std::int64_t segment_bytes = 64 * 1024;  // announced messages travel in fragments, or are read, of this size
  bool reads_inside_node = true;           // the ranks of a node read each other's memory
};

// What travels. The payload is a copy made when it leaves the sender's memory.
struct Packet {
  enum class Kind : std::uint8_t {
    frame,    // type, head, payload
    control,  // payload
    goodbye,  // nothing follows
    lost,     // told by the network itself: the link to `from` broke
    refused,  // likewise: no link to `from` could be made
  };
  Kind kind = Kind::control;
  int from = 0;
  int to = 0;
  std::uint8_t type = 0;
  std::vector<std::byte> head{};
  std::vector<std::byte> payload{};
  std::string reason{};
};

// Carries packets. Each direction of a link has two channels, data and control, and keeps the order on each; a link is
// opened by its first use, as with connections, and once broken stays broken.
class SimulatedNetwork {
 public:
  using Deliver = std::function<void(Packet)>;
  SimulatedNetwork(const SimulationOptions& options, EventQueue& events, Random random, Deliver deliver)
      : options_(options), events_(&events), random_(random), deliver_(std::move(deliver)) {}

  void open(int from, int to);
  void carry(Packet packet);
  // How long the sender's network card is busy with so many bytes.
  [[nodiscard]] Duration sending_time(int from, int to, std::int64_t bytes) const;
  // The peers to which a link is open, in rank order.
  [[nodiscard]] const std::set<int>& links_of(int rank) { return links_[rank]; }

  // Faults. `until` a time, nothing arrives on the link, both ways; it arrives later, in order.
  void stall(int a, int b, TimePoint until);
  // Every packet to this rank takes so much longer, until a time.
  void delay(int rank, Duration extra, TimePoint until);
  // From now on what `from` sends to `to` is gone; `from` learns of it, as a sender without acknowledgements does.
  void cut(int from, int to);
  // The rank's process is gone: its links break, and later connections to it are refused.
  void kill(int rank);
  // The rank closed its links with a goodbye on each.
  void close(int rank);

  // A fingerprint of every delivery so far: equal seeds must give equal fingerprints.
  [[nodiscard]] std::uint64_t trace() const { return trace_.value(); }

 private:
  struct Waiting {
    TimePoint ready;
    Packet packet;
  };
  struct Channel {
    std::deque<Waiting> queue;
    bool scheduled = false;
  };
  struct Direction {
    Channel data, control;
    TimePoint stalled_until{};
    bool cut = false;
  };
  struct Delay {
    Duration extra{};
    TimePoint until{};
  };

  [[nodiscard]] const LinkCost& cost(int from, int to) const;
  Direction& direction(int from, int to);
  void schedule(int from, int to, Channel& channel);
  void arrive(int from, int to, Channel& channel);
  void tell(int whom, int peer, Packet::Kind kind, std::string reason);

  SimulationOptions options_;
  EventQueue* events_;
  Random random_;
  Deliver deliver_;
  std::unordered_map<std::uint64_t, Direction> directions_;
  std::unordered_map<int, std::set<int>> links_;
  std::unordered_map<int, Delay> delays_;
  std::set<int> killed_, closed_;
  Hash trace_;
};

}  // namespace tutti::link
