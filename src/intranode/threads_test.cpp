// threads_test.cpp: members that really run side by side: random calls, in arenas as between processes.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <chrono>
#include <latch>
#include <memory>
#include <thread>

#include "intranode/arena_segment.hpp"
#include "tests/support/intranode_members.hpp"
#include "tests/support/intranode_sample.hpp"

namespace tutti::intranode {
namespace {

constexpr Verb all_verbs[] = {Verb::all_reduce,     Verb::reduce,  Verb::broadcast,  Verb::all_gather,
                              Verb::gather,         Verb::scatter, Verb::all_to_all, Verb::scan,
                              Verb::reduce_scatter, Verb::exscan,  Verb::permute,    Verb::barrier};

std::vector<Sample> drawn_samples(Random& random, int size, int calls) {
  std::vector<Sample> samples;
  for (int i = 0; i < calls; ++i) {
    SampleShape shape{.verb = all_verbs[random.below(std::size(all_verbs))], .size = size};
    shape.count = shape.verb == Verb::barrier ? 0
                  : random.chance(0.5)        ? random.between(0, 12)
                                              : random.between(0, 2000);
    shape.root = static_cast<int>(random.below(static_cast<std::uint64_t>(size)));
    shape.in_place = random.chance(0.5);
    shape.uneven = random.chance(0.3) && (shape.verb == Verb::all_to_all || shape.verb == Verb::all_gather);
    samples.emplace_back(shape, static_cast<std::uint64_t>(i + 1), random);
  }
  return samples;
}

/// Polls until done; false if that takes unreasonably long.
bool finish(Execution& execution) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!execution.poll()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

/// One member's part of all the calls. Some are started together, as asynchronous ones are.
std::string take_part(Member& group, std::vector<Sample>& samples, int rank) {
  constexpr std::size_t together = 3;
  for (std::size_t first = 0; first < samples.size(); first += together) {
    std::vector<Execution*> executions;
    for (std::size_t i = first; i < std::min(first + together, samples.size()); ++i) {
      executions.push_back(&group.start(samples[i].start(rank)));
    }
    for (Execution* execution : executions) {
      if (!finish(*execution)) return "stands still: " + samples[first].text();
      group.release(*execution);
    }
  }
  for (const Sample& sample : samples) {
    if (std::string difference = sample.difference(rank); !difference.empty()) return difference;
  }
  return {};
}

TEST(Threads, RandomCallsOfEveryVerbComeOutRight) {
  Random random(61);
  using enum Members::Arrays;
  for (const auto& [size, arrays] :
       {std::pair(2, elsewhere), {3, elsewhere}, {4, elsewhere}, {2, in_common}, {3, readable}}) {
    SharedLimits limits{.slot_bytes = 1024,
                        .chunk_bytes = 512,
                        .one_way_chunk_bytes = 128,
                        .alternating_chunk_bytes = 256,
                        .one_shot_bytes_max = 800,
                        .one_shot_bytes_max_alternating = 1600};
    limits.direct_copy_bytes_min = limits.direct_reduce_bytes_min = 1500;
    limits.read_scattered_bytes_min = 3000;
    Members members(size, limits, arrays);
    std::vector<Sample> samples = drawn_samples(random, size, 150);
    std::vector<std::string> outcomes(static_cast<std::size_t>(size));
    {
      std::vector<std::jthread> threads;
      for (int rank = 0; rank < size; ++rank) {
        threads.emplace_back(
            [&, rank] { outcomes[static_cast<std::size_t>(rank)] = take_part(members[rank], samples, rank); });
      }
    }
    for (const std::string& outcome : outcomes) EXPECT_EQ(outcome, "");
  }
}

TEST(Threads, ArenasServeAsCommonMemory) {
  constexpr int size = 3;
  Random random(67);
  std::vector<Sample> samples = drawn_samples(random, size, 60);
  std::vector<std::shared_ptr<shm::Arena>> arenas;
  std::vector<shm::ArenaAddress> addresses;
  for (int rank = 0; rank < size; ++rank) {
    arenas.push_back(std::make_shared<shm::Arena>(shm::ArenaOptions{.bytes = 64 << 20, .ranks = size}));
    addresses.push_back(arenas.back()->address());
  }
  std::vector<std::uint64_t> offsets(size);
  std::vector<std::string> outcomes(size);
  std::latch seated_members(size), parted(size);
  const auto member = [&](int rank) {
    const auto index = static_cast<std::size_t>(rank);
    auto local_peers = std::make_shared<shm::LocalPeers>(arenas[index], rank, addresses);
    ArenaSegment segment({.local_peers = local_peers, .memory = shm::Memory::of(arenas[index]), .members = {0, 1, 2}});
    Member group({.segment = &segment, .rank = rank, .size = size});
    offsets[index] = group.control_block_offset();
    seated_members.arrive_and_wait();
    group.connect(offsets);
    outcomes[index] = take_part(group, samples, rank);
    parted.arrive_and_wait();
  };
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < size; ++rank) threads.emplace_back(member, rank);
  }
  for (const std::string& outcome : outcomes) EXPECT_EQ(outcome, "");
}

}  // namespace
}  // namespace tutti::intranode
