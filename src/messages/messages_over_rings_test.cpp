// messages_over_rings_test.cpp: the host transport with ranks as threads: mixed traffic, memory taken back in the middle of a copy,
// shared memory as the source, and what the runtime asks it.
// SPDX-License-Identifier: Apache-2.0
#include "messages/messages.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "base/random.hpp"
#include "shm/doorbell.hpp"
#include "tests/support/messages_world.hpp"

namespace tutti::messages {
namespace {

using namespace std::chrono_literals;

constexpr Duration patience = 60s;

bool is_soak() { return std::getenv("TUTTI_SOAK") != nullptr; }

// Polls until the condition holds; false if it does not for a long time.
template <class Until>
bool drive(Transport& transport, Until until) {
  const TimePoint deadline = steady_clock().now() + patience;
  while (!until()) {
    if (transport.poll()) continue;
    if (steady_clock().now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

// Runs body(rank, transport) in a thread per rank; all close when all are done.
template <class Body>
void run_ranks(int size, const RingWorldOptions& options, Body body) {
  auto endpoints = make_ring_endpoints(size, options);
  std::vector<Recorder> listeners(endpoints.size());
  std::atomic<int> busy = size;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      Messages& transport = *endpoints[static_cast<std::size_t>(rank)];
      transport.listen(&listeners[static_cast<std::size_t>(rank)]);
      body(rank, transport);
      --busy;
      EXPECT_TRUE(drive(transport, [&] { return busy == 0; }));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Recorder& listener : listeners) EXPECT_TRUE(listener.losses.empty());
}

// What everybody sends to everybody, known to all from the seed: (source, destination) → messages in their order.
struct Traffic {
  struct Message {
    std::uint32_t tag = 0;
    std::int64_t bytes = 0;
    std::uint64_t seed = 0;
    bool from_anyone = false;  // received so: a tag of its own
  };
  std::vector<Message> of(int source, int destination) const {
    Random random(seed * 1'000'003 + static_cast<std::uint64_t>(source * 100 + destination));
    std::vector<Message> messages;
    for (int i = 0; i < count; ++i) {
      const std::int64_t bytes = random.below(6) == 0 ? random.between(4'000, 60'000) : random.between(0, 3'000);
      const bool from_anyone = random.below(5) == 0;
      messages.push_back({.tag = from_anyone ? 77 : static_cast<std::uint32_t>(random.below(3)),
                          .bytes = from_anyone ? 5'000 : bytes,
                          .seed = random.next(),
                          .from_anyone = from_anyone});
    }
    return messages;
  }
  std::uint64_t seed = 0;
  int count = 0;
};

// One rank's part: posts its sends and receives in a random order, with polls in between, and checks what arrived.
void exchange(int rank, Transport& transport, const Traffic& traffic) {
  const int size = transport.size();
  Random random(traffic.seed + static_cast<std::uint64_t>(rank) * 7919);
  std::vector<std::vector<std::uint64_t>> anyone(static_cast<std::size_t>(size));
  std::vector<std::vector<Parcel>> queues;  // kept in order inside, mixed among each other
  for (int peer = 0; peer < size; ++peer) {
    std::vector<Parcel> out, in;
    for (const auto& message : traffic.of(rank, peer))
      out.push_back(Parcel::to(peer, message.tag, message.bytes, message.seed));
    for (const auto& message : traffic.of(peer, rank)) {
      in.push_back(Parcel::from(message.from_anyone ? any_peer : peer, message.tag, message.bytes));
      if (message.from_anyone) anyone[static_cast<std::size_t>(peer)].push_back(message.seed);
    }
    queues.push_back(std::move(out));
    queues.push_back(std::move(in));
  }
  std::vector<std::size_t> posted(queues.size());
  for (std::size_t left = queues.size(); left > 0;) {
    const auto queue = static_cast<std::size_t>(random.below(queues.size()));
    if (posted[queue] == queues[queue].size()) {
      left = 0;
      for (std::size_t i = 0; i < queues.size(); ++i) left += posted[i] < queues[i].size() ? 1 : 0;
      continue;
    }
    Parcel& parcel = queues[queue][posted[queue]++];
    if (queue % 2 == 0) {
      transport.send(*parcel.transfer);
    } else if (random.below(2) == 0 || !transport.try_recv(*parcel.transfer, 2)) {
      transport.recv(*parcel.transfer);
    }
    if (random.below(3) == 0) transport.poll();
  }
  ASSERT_TRUE(drive(transport,
                    [&] {
                      return std::ranges::all_of(
                          queues, [](const auto& queue) { return std::ranges::none_of(queue, &Parcel::is_pending); });
                    }))
      << "rank " << rank;

  for (int peer = 0; peer < size; ++peer) {
    const auto messages = traffic.of(peer, rank);
    const std::vector<Parcel>& in = queues[static_cast<std::size_t>(2 * peer + 1)];
    for (std::size_t i = 0; i < messages.size(); ++i) {
      ASSERT_TRUE(in[i].is_done()) << in[i].transfer->error;
      if (!messages[i].from_anyone) {
        ASSERT_TRUE(in[i].holds(messages[i].seed)) << peer << " to " << rank << ", message " << i;
        continue;
      }
      auto& seeds = anyone[static_cast<std::size_t>(in[i].transfer->peer)];
      const auto found = std::ranges::find_if(seeds, [&](std::uint64_t seed) { return in[i].holds(seed); });
      ASSERT_NE(found, seeds.end()) << "from anyone, it came from " << in[i].transfer->peer;
      seeds.erase(found);
    }
  }
}

TEST(MessagesOverRings, mixed_traffic_of_one_to_five_ranks_arrives_whole_and_in_order) {
  const std::uint64_t seeds = is_soak() ? 40 : 1;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    for (int size = 1; size <= 5; ++size) {
      for (const bool cross_memory : {true, false}) {
        RingWorldOptions options{.ranks_per_host = size == 4 ? 2 : 3};
        options.ring.cross_memory = cross_memory;
        SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << size << " ranks, cross memory " << cross_memory);
        const Traffic traffic{.seed = seed, .count = is_soak() ? 40 : 14};
        run_ranks(size, options, [&](int rank, Messages& transport) { exchange(rank, transport, traffic); });
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

// The sender takes its memory back at a random moment and overwrites it at once. The receiver gets the message, or an
// error, or nothing; never something else.
TEST(MessagesOverRings, memory_taken_back_in_the_middle_of_a_copy_is_never_delivered) {
  constexpr std::int64_t bytes = 200'000;
  constexpr std::uint32_t last_tag = 1'000'000;
  const std::uint32_t rounds = is_soak() ? 3'000 : 60;
  for (const bool cross_memory : {true, false}) {
    RingWorldOptions options;
    options.ring.cross_memory = cross_memory;
    run_ranks(2, options, [&](int rank, Messages& transport) {
      Random random(static_cast<std::uint64_t>(rank) + 5);
      std::uint32_t delivered = 0, failed = 0;
      for (std::uint32_t round = 0; round < rounds; ++round) {
        if (rank == 0) {
          Parcel out = Parcel::to(1, round, bytes, round);
          transport.send(*out.transfer);
          for (std::uint64_t polls = random.below(120); polls > 0; --polls) transport.poll();
          transport.cancel(*out.transfer);
          out.fill(std::byte{0xEE});
        } else {
          Parcel in = Parcel::from(0, round, bytes);
          transport.recv(*in.transfer);
          for (int polls = 0; polls < 60 && in.is_pending(); ++polls) transport.poll();
          EXPECT_TRUE(!in.is_done() || in.holds(round)) << "round " << round;
          delivered += in.is_done();
          failed += in.has_failed();
          transport.cancel(*in.transfer);
        }
      }
      Parcel last = rank == 0 ? Parcel::to(1, last_tag, bytes, 8) : Parcel::from(0, last_tag, bytes);
      rank == 0 ? transport.send(*last.transfer) : transport.recv(*last.transfer);
      ASSERT_TRUE(drive(transport, [&] { return !last.is_pending(); }));
      EXPECT_TRUE(last.is_done() && (rank == 0 || last.holds(8))) << last.transfer->error;
      if (rank == 1)
        RecordProperty(cross_memory ? "delivered_failed" : "delivered_failed_in_pieces",
                       std::to_string(delivered) + " " + std::to_string(failed));
    });
  }
}

TEST(MessagesOverRings, a_message_in_shared_memory_is_loaded_from_there) {
  RingWorldOptions options;
  options.arenas = {std::make_shared<shm::Arena>(shm::ArenaOptions{.bytes = 64 << 20}),
                    std::make_shared<shm::Arena>(shm::ArenaOptions{.bytes = 64 << 20})};
  options.ring.cross_memory = false;  // so that only loading is quick
  auto world = make_ring_endpoints(2, options);
  std::vector<Recorder> listeners(2);
  for (std::size_t rank : {0u, 1u}) world[rank]->listen(&listeners[rank]);
  constexpr std::int64_t bytes = 300'000;
  Parcel model = Parcel::to(1, 4, bytes, 9), in = Parcel::from(0, 4, bytes);
  std::byte* const shared = options.arenas[0]->allocate(bytes);
  std::copy_n(model.transfer->from, bytes, shared);
  model.transfer->from = shared;
  world[1]->recv(*in.transfer);
  world[0]->send(*model.transfer);
  for (int polls = 0; polls < 4; ++polls) world[1]->poll();  // 100 000 bytes each, without a poll of the sender
  EXPECT_TRUE(in.is_done() && in.holds(9));
  world[0]->poll();
  EXPECT_TRUE(model.is_done());
}

// Pieces that begin and end within a line, too.
TEST(MessagesOverRings, a_message_that_goes_past_the_caches_arrives_whole) {
  RingWorldOptions options;
  options.ring.get_bytes_max = 0;
  options.ring.fragment_bytes_max = 1'500;
  const std::int64_t bytes = streamed_bytes_min() + 1;
  run_ranks(2, options, [&](int rank, Transport& transport) {
    Parcel parcel = rank == 0 ? Parcel::to(1, 4, bytes, 9) : Parcel::from(0, 4, bytes);
    rank == 0 ? transport.send(*parcel.transfer) : transport.recv(*parcel.transfer);
    ASSERT_TRUE(drive(transport, [&] { return !parcel.is_pending(); }));
    EXPECT_TRUE(parcel.is_done());
    EXPECT_TRUE(rank == 0 || parcel.holds(9));
    EXPECT_TRUE(parcel.margins_are_whole());
  });
}

TEST(MessagesOverRings, a_sleeper_is_woken_by_a_message_and_by_its_acknowledgement) {
  RingWorldOptions options;
  for (int rank = 0; rank < 2; ++rank) {
    options.arenas.push_back(std::make_shared<shm::Arena>(shm::ArenaOptions{.bytes = 64 << 20}));
  }
  run_ranks(2, options, [&](int rank, Messages& transport) {
    shm::Doorbell doorbell(options.arenas[static_cast<std::size_t>(rank)]->header());
    const auto sleep_until_done = [&](const Parcel& parcel) {
      const TimePoint deadline = steady_clock().now() + patience;
      while (parcel.is_pending() && steady_clock().now() < deadline) {
        doorbell.prepare();
        // Nothing but the doorbell ends this sleep before the deadline.
        transport.poll() || !parcel.is_pending() ? doorbell.leave() : doorbell.sleep(deadline);
      }
      return parcel.is_done();
    };
    for (std::uint32_t i = 0; i < 200; ++i) {
      const std::int64_t bytes = i % 3 == 0 ? 70'000 : i % 3 == 1 ? 8 : 3'000;
      const bool sends = static_cast<int>(i % 2) == rank;
      Parcel parcel = sends ? Parcel::to(1 - rank, i, bytes, i) : Parcel::from(1 - rank, i, bytes);
      sends ? transport.send(*parcel.transfer) : transport.recv(*parcel.transfer);
      ASSERT_TRUE(sleep_until_done(parcel)) << i;
      ASSERT_TRUE(sends || parcel.holds(i));
    }
  });
}

TEST(MessagesOverRings, it_tells_whether_something_under_way_needs_the_network) {
  const auto world_of = [](int ranks_per_host) { return make_ring_endpoints(3, {.ranks_per_host = ranks_per_host}); };
  Recorder listener;
  const auto asked = [&](Messages& transport, int peer) {
    transport.listen(&listener);
    Parcel in = Parcel::from(peer, 1, 8);
    EXPECT_FALSE(transport.busy_outside());
    transport.recv(*in.transfer);
    const bool busy = transport.busy_outside();
    transport.cancel(*in.transfer);
    EXPECT_FALSE(transport.busy_outside());
    return busy;
  };
  auto one_host = world_of(3), two_hosts = world_of(2);
  EXPECT_EQ(one_host[0]->name(), "shm");
  EXPECT_EQ(two_hosts[0]->name(), "shm+tcp");
  EXPECT_FALSE(asked(*one_host[0], 1));
  EXPECT_FALSE(asked(*one_host[0], any_peer));
  EXPECT_FALSE(asked(*two_hosts[0], 1));
  EXPECT_TRUE(asked(*two_hosts[0], 2));
  EXPECT_TRUE(asked(*two_hosts[0], any_peer));
}

TEST(MessagesOverRings, options_that_make_no_sense_are_refused_by_name) {
  const auto refused = [](link::RingOptions options) {
    try {
      check(options);
      return std::string("accepted");
    } catch (const InvalidArgument& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(refused({}), "accepted");
  EXPECT_EQ(refused(small_ring), "accepted");
  EXPECT_THAT(refused({.eager_bytes_max = -1}), testing::HasSubstr("eager_bytes_max = -1"));
  EXPECT_THAT(refused({.eager_bytes_max = 1 << 20}), testing::HasSubstr("ring_bytes"));
  EXPECT_THAT(refused({.credit_bytes = 100}), testing::HasSubstr("credit_bytes = 100"));
  EXPECT_THAT(refused({.ring_bytes = 5000}), testing::HasSubstr("ring_bytes = 5000"));
  EXPECT_THAT(refused({.chunk_bytes = 0}), testing::HasSubstr("chunk_bytes = 0"));
  EXPECT_THAT(refused({.fragment_bytes_max = 0}), testing::HasSubstr("fragment_bytes_max = 0"));
  for (int ranks = 1; ranks <= 4096; ranks = ranks * 2 + 1) {
    EXPECT_EQ(refused(link::ring_options_for(ranks, false)), "accepted") << ranks;
    EXPECT_EQ(refused(link::ring_options_for(ranks, true)), "accepted") << ranks;
  }
}

}  // namespace
}  // namespace tutti::messages
