// cells_test.cpp: who holds a cell, and which names are believed.
// SPDX-License-Identifier: Apache-2.0
#include "link/cells.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "base/bytes.hpp"

namespace tutti::link {
namespace {

constexpr RingOptions options{.cells = 3, .cell_bytes = 256};

// Three ranks of one host, each with its cells.
struct Host {
  Host() {
    for (int rank = 0; rank < ranks; ++rank) {
      arenas.push_back(std::make_shared<shm::Arena>(shm::ArenaOptions{.bytes = 16 << 20}));
      addresses.push_back(arenas.back()->address());
      blocks.push_back(lay_out_control_block(*arenas.back(), ranks));
    }
    for (int rank = 0; rank < ranks; ++rank) {
      auto& peers = locals.emplace_back(
          std::make_shared<shm::LocalPeers>(arenas[static_cast<std::size_t>(rank)], rank, addresses));
      auto& own = cells.emplace_back(options, peers, ranks);
      for (int peer = 0; peer < ranks; ++peer) {
        if (peer != rank) own.connect(peer, control(*peers, rank, peer), control(*peers, peer, rank));
      }
    }
  }
  RingControl& control(const shm::LocalPeers& peers, int owner, int reader) const {
    const std::uint64_t offset = blocks[static_cast<std::size_t>(owner)];
    return reinterpret_cast<RingControl*>(peers.at(owner, offset, ranks * sizeof(RingControl)))[reader];
  }

  static constexpr int ranks = 3;
  std::vector<std::shared_ptr<shm::Arena>> arenas;
  std::vector<shm::ArenaAddress> addresses;
  std::vector<std::uint64_t> blocks;
  std::vector<std::shared_ptr<shm::LocalPeers>> locals;
  std::vector<Cells> cells;
};

TEST(Cells, ARankHasItsOwnUntilItHandsThemOver) {
  Host host;
  EXPECT_TRUE(host.cells[0].has(3));
  EXPECT_FALSE(host.cells[0].has(4));
  for (int i = 0; i < 2; ++i) static_cast<void>(host.cells[0].take());
  EXPECT_TRUE(host.cells[0].has(1));
  EXPECT_FALSE(host.cells[0].has(2));
}

TEST(Cells, ACellGoesFromRankToRankAndTheLastReadIsWrittenNext) {
  Host host;
  ASSERT_TRUE(host.cells[0].has(1) && host.cells[1].has(1) && host.cells[2].has(1));
  const Cells::Cell sent = host.cells[0].take();
  sent.memory[7] = std::byte{42};
  const Cells::Cell read = host.cells[1].named(sent.name);
  EXPECT_EQ(read.memory[7], std::byte{42});
  host.cells[1].hold(read);
  const Cells::Cell forwarded = host.cells[1].take();
  EXPECT_EQ(forwarded.memory, read.memory);
  forwarded.memory[7] = std::byte{43};
  EXPECT_EQ(host.cells[2].named(forwarded.name).memory[7], std::byte{43});  // it lies in the arena of rank 0
  EXPECT_EQ(sent.memory[7], std::byte{43});
}

TEST(Cells, WithoutMemoryForThemThereAreNone) {
  Host host;  // 16 MiB each
  Cells cells({.cells = 1024, .cell_bytes = 16 << 10}, host.locals[0], Host::ranks);
  EXPECT_FALSE(cells.has(1));
}

TEST(Cells, ANameThatNoRankHasLaidOutIsRejected) {
  Host host;
  ASSERT_TRUE(host.cells[0].has(1));
  const auto rejected = [&](CellName name) {
    try {
      static_cast<void>(host.cells[1].named(name));
      return false;
    } catch (const MalformedMessage&) {
      return true;
    }
  };
  EXPECT_FALSE(rejected({.owner = 0, .index = 2, .payload_bytes = 256}));
  EXPECT_TRUE(rejected({.owner = 0, .index = 3, .payload_bytes = 256}));
  EXPECT_TRUE(rejected({.owner = 0, .index = 2, .payload_bytes = 257}));
  EXPECT_TRUE(rejected({.owner = 3, .index = 0, .payload_bytes = 1}));
  EXPECT_TRUE(rejected({.owner = ~0u, .index = 0, .payload_bytes = 1}));
  EXPECT_TRUE(rejected({.owner = 2, .index = 0, .payload_bytes = 1}));  // it has laid out none
  EXPECT_TRUE(rejected({.owner = 1, .index = 0, .payload_bytes = 1}));  // nor has this rank
  host.control(*host.locals[0], 0, 1).cells_offset = 16 << 20;
  EXPECT_TRUE(rejected({.owner = 0, .index = 0, .payload_bytes = 1}));
  host.control(*host.locals[0], 0, 1).cells_offset = 4096 + 8;
  EXPECT_TRUE(rejected({.owner = 0, .index = 0, .payload_bytes = 1}));
}

}  // namespace
}  // namespace tutti::link
