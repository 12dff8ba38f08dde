// cells.hpp: blocks of shared memory in which payloads travel from rank to rank.
// SPDX-License-Identifier: Apache-2.0
//
// A rank that has read a cell writes the next payload that it sends into it, to whichever rank of the host that goes. The cell's lines
// are in that rank's cache already. In a ring they are in the cache of the rank that has read them, and travel back first: 48 KiB each
// way take 2.2 µs through rings, and 1.9 through cells (AMD EPYC, fifth generation; docs/performance_tables.md).
//
//  1. A record that names a cell hands it over (ring.hpp): its writer does not touch the cell afterwards. So a cell has one holder at
//     a time, whosever arena it lies in.
//  2. Nothing waits for a cell. A rank that has none left writes into its ring, and cells that a rank keeps when it ends are missed
//     by nobody.
//  3. A name that a peer wrote is checked before it is believed: it is one of the cells that its owner has laid out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "link/ring_control_block.hpp"
#include "shm/local_peers.hpp"

namespace tutti::link {

// How a record names a cell, and the part of a payload in it.
struct CellName {
  std::uint32_t owner = 0;  // a rank in the world
  std::uint32_t index = 0;
  std::uint64_t payload_bytes = 0;
};

class Cells {
 public:
  struct Cell {
    CellName name{};
    std::byte* memory = nullptr;  // nullptr: none
  };

  Cells(const RingOptions& options, std::shared_ptr<shm::LocalPeers> local_peers, std::size_t ranks)
      : bytes_(options.cell_bytes), own_count_(options.cells), local_peers_(std::move(local_peers)), controls_(ranks) {}
  // `ours` of this rank for the peer, and `theirs` of the peer for this rank.
  void connect(int peer, RingControl& ours, const RingControl& theirs) {
    controls_[static_cast<std::size_t>(peer)] = {&ours, &theirs};
  }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  // Whether this rank holds so many. The first time, it lays out its own.
  [[nodiscard]] bool has(std::size_t count) {
    if (!laid_out_) [[unlikely]]
      lay_out();
    return held_.size() >= count;
  }
  // The cell that was read or laid out last; has() said that there is one.
  [[nodiscard]] Cell take() {
    const Cell cell = held_.back();
    held_.pop_back();
    return cell;
  }
  // The cell that a peer has handed over. MalformedMessage if there is none of that name.
  [[nodiscard]] Cell named(const CellName& name) const;
  // It was read, and is this rank's to write.
  void hold(const Cell& cell) { held_.push_back(cell); }

 private:
  struct Controls {
    RingControl* ours = nullptr;
    const RingControl* theirs = nullptr;
  };
  void lay_out();

  std::size_t bytes_, own_count_;
  std::shared_ptr<shm::LocalPeers> local_peers_;
  std::vector<Controls> controls_;  // by rank
  std::uint64_t own_offset_ = 0;    // in this rank's arena
  bool laid_out_ = false;
  std::vector<Cell> held_;
};

}  // namespace tutti::link
