// memory_test.cpp: memory that peers may still touch is not recycled: stopped, woken, killed ones.
// SPDX-License-Identifier: Apache-2.0
#include "shm/memory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include <tutti/buffer.hpp>
#include <tutti/error.hpp>
#include <tutti/view.hpp>

#include "shm/local_peers.hpp"
#include "tests/support/child_process.hpp"

namespace tutti::shm {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr std::uint64_t mib = 1u << 20;

std::shared_ptr<Arena> make_arena() { return std::make_shared<Arena>(ArenaOptions{.bytes = 64 * mib}); }

class WrittenLedger final : public Ledger {
 public:
  explicit WrittenLedger(std::map<int, std::uint64_t> done) : done_(std::move(done)) {
    for (const auto& [rank, seq] : done_) peers_.push_back(rank);
  }
  [[nodiscard]] std::span<const int> peers() const override { return peers_; }
  [[nodiscard]] bool is_done(int world_rank, std::uint64_t seq) const override { return done_.at(world_rank) >= seq; }
  void write(int world_rank, std::uint64_t seq) { done_.at(world_rank) = seq; }

 private:
  std::map<int, std::uint64_t> done_;
  std::vector<int> peers_;
};

TEST(Memory, a_block_that_was_not_exposed_is_recycled_at_once) {
  const auto memory = Memory::of(make_arena());
  auto block = memory->take(mib);
  std::byte* const address = block.get();
  block.reset();
  EXPECT_EQ(memory->quarantined_bytes(), 0U);
  EXPECT_EQ(memory->take(mib).get(), address);
}

TEST(Memory, a_block_waits_for_every_peer_and_the_newest_sequence_number_of_each_ledger) {
  const auto memory = Memory::of(make_arena());
  const auto first = std::make_shared<WrittenLedger>(std::map<int, std::uint64_t>{{1, 0}, {2, 0}});
  const auto second = std::make_shared<WrittenLedger>(std::map<int, std::uint64_t>{{3, 0}});
  auto block = memory->take(mib);
  EXPECT_TRUE(memory->expose(block.get() + 100, first, 4));
  EXPECT_TRUE(memory->expose(block.get() + mib - 1, first, 5));
  EXPECT_TRUE(memory->expose(block.get(), second, 1));
  block.reset();
  const auto waits = [&] {
    memory->collect();
    return memory->quarantined_bytes() == mib;
  };
  EXPECT_TRUE(waits());
  first->write(1, 5);
  second->write(3, 1);
  EXPECT_TRUE(waits()) << "rank 2 has not answered";
  first->write(2, 4);
  EXPECT_TRUE(waits()) << "rank 2 is done with an earlier call";
  first->write(2, 5);
  EXPECT_FALSE(waits());
}

TEST(Memory, an_ended_rank_is_not_waited_for) {
  const auto memory = Memory::of(make_arena());
  const auto ledger = std::make_shared<WrittenLedger>(std::map<int, std::uint64_t>{{1, 0}, {2, 9}});
  auto block = memory->take(mib);
  memory->expose(block.get(), ledger, 9);
  block.reset();
  memory->ended(2);
  EXPECT_EQ(memory->quarantined_bytes(), mib) << "that was not the one";
  memory->ended(1);
  EXPECT_EQ(memory->quarantined_bytes(), 0U);
}

TEST(Memory, a_ledger_may_own_memory_itself) {
  class OwningLedger final : public Ledger {
   public:
    explicit OwningLedger(std::shared_ptr<std::byte> block) : block_(std::move(block)) {}
    [[nodiscard]] std::span<const int> peers() const override { return {}; }
    [[nodiscard]] bool is_done(int, std::uint64_t) const override { return true; }

   private:
    std::shared_ptr<std::byte> block_;
  };
  const auto memory = Memory::of(make_arena());
  auto block = memory->take(mib);
  memory->expose(block.get(), std::make_shared<OwningLedger>(memory->take(mib)), 1);
  block.reset();  // its last offer, its last ledger, and the ledger's block
  EXPECT_EQ(memory->quarantined_bytes(), 0U);
}

TEST(Memory, addresses_elsewhere_cannot_be_exposed) {
  const auto memory = Memory::of(make_arena());
  const auto ledger = std::make_shared<WrittenLedger>(std::map<int, std::uint64_t>{{1, 0}});
  const auto block = memory->take(1000);
  const int elsewhere = 0;
  EXPECT_FALSE(memory->expose(&elsewhere, ledger, 1));
  EXPECT_FALSE(memory->expose(block.get() + 1000, ledger, 1)) << "behind the end";
  EXPECT_FALSE(memory->expose(memory->arena().allocate(10), ledger, 1)) << "not from take()";
}

TEST(Memory, running_out_names_those_who_hold_memory_in_quarantine) {
  const auto memory = Memory::of(std::make_shared<Arena>(ArenaOptions{.bytes = 64 * mib, .commit_limit = 4 * mib}));
  const auto ledger = std::make_shared<WrittenLedger>(std::map<int, std::uint64_t>{{5, 0}, {7, 0}});
  auto block = memory->take(3 * mib);
  memory->expose(block.get(), ledger, 1);
  block.reset();
  EXPECT_THAT([&] { (void)memory->take(3 * mib); },
              ThrowsMessage<Error>(HasSubstr("(3 MiB more are free as soon as rank 5, 7 is done with them)")));
  ledger->write(5, 1);
  ledger->write(7, 1);
  EXPECT_NE(memory->take(3 * mib), nullptr);
}

TEST(Memory, a_buffer_keeps_its_arena_and_goes_into_verbs_as_a_range) {
  auto memory = Memory::of(make_arena());
  auto block = memory->take(100 * sizeof(float));
  auto* const data = reinterpret_cast<float*>(block.get());
  Buffer<float> buffer(std::move(block), data, 100);
  const std::weak_ptr<Memory> witness = memory;
  memory.reset();
  EXPECT_FALSE(witness.expired());
  std::ranges::fill(buffer, 2.0F);
  const View view(buffer);
  EXPECT_EQ(view.count(), 100);
  EXPECT_EQ(view.data(), data);
  EXPECT_FALSE(view.is_read_only());
  EXPECT_TRUE(View(std::as_const(buffer)).is_read_only());
  static_assert(!LastingRange<Buffer<float>>, "a temporary would be gone before the call is");
  static_assert(!std::is_copy_constructible_v<Buffer<float>>);
  Buffer<float> moved = std::move(buffer);
  EXPECT_TRUE(buffer.empty());  // NOLINT: a moved-from Buffer is empty by contract
  EXPECT_EQ(std::span<float>(moved).size(), 100U);
  moved = Buffer<float>();
  EXPECT_TRUE(witness.expired());
}

// What a rank in another process does with a block of the first one. The words lie in its own arena.
struct Desk {
  std::atomic<std::uint64_t> begin{0};  // set by the first rank: now write
  std::atomic<std::uint64_t> done{0};
};

int rank_that_writes_late(Line& line) {
  const auto arena = make_arena();
  const std::uint64_t place = arena->offset_of(arena->allocate(sizeof(Desk)));
  auto* const desk = new (reinterpret_cast<std::byte*>(&arena->header()) + place) Desk;
  line.say(arena->address().to_text());
  line.say(std::to_string(place));
  const auto peer = ArenaAddress::from_text(line.hear());
  const LocalPeers local_peers(arena, 1, {peer, arena->address()});
  if (!local_peers.reaches(0)) return 1;
  std::byte* const target = local_peers.at(0, std::stoull(line.hear()), mib);
  line.say("ready");
  while (desk->begin.load(std::memory_order_acquire) == 0)
    std::this_thread::yield();  // its alarm ends it at the latest
  std::memset(target, 0xbd, mib);
  desk->done.store(1, std::memory_order_release);
  (void)line.hear();
  return 0;
}

class DeskLedger final : public Ledger {
 public:
  explicit DeskLedger(const Desk& desk) : desk_(desk) {}
  [[nodiscard]] std::span<const int> peers() const override { return peers_; }
  [[nodiscard]] bool is_done(int, std::uint64_t seq) const override {
    return desk_.done.load(std::memory_order_acquire) >= seq;
  }

 private:
  const Desk& desk_;
  std::array<int, 1> peers_ = {1};
};

// Rank 1 is stopped just before it writes into a block that rank 0 then drops.
class StoppedPeer : public testing::Test {
 protected:
  void SetUp() override {
    const auto address = ArenaAddress::from_text(child_.line().hear());
    const auto place = std::stoull(child_.line().hear());
    local_peers_ = std::make_unique<LocalPeers>(arena_, 0, std::vector{arena_->address(), address});
    ASSERT_TRUE(local_peers_->reaches(1)) << local_peers_->why_not(1);
    desk_ = reinterpret_cast<Desk*>(local_peers_->at(1, place, sizeof(Desk)));

    auto block = memory_->take(mib);
    address_ = block.get();
    child_.line().say(arena_->address().to_text());
    child_.line().say(std::to_string(arena_->offset_of(address_)));
    ASSERT_EQ(child_.line().hear(), "ready");
    ASSERT_TRUE(memory_->expose(address_, std::make_shared<DeskLedger>(*desk_), 1));
    child_.stop();
    desk_->begin.store(1, std::memory_order_release);
  }

  ChildProcess child_{rank_that_writes_late};
  std::shared_ptr<Arena> arena_ = make_arena();
  std::shared_ptr<Memory> memory_ = Memory::of(arena_);
  std::unique_ptr<LocalPeers> local_peers_;
  Desk* desk_ = nullptr;
  std::byte* address_ = nullptr;
};

TEST_F(StoppedPeer, does_not_write_into_reused_memory_when_it_wakes_up) {
  memory_->collect();
  EXPECT_EQ(memory_->quarantined_bytes(), mib);
  const auto next = memory_->take(mib);
  ASSERT_NE(next.get(), address_);
  std::memset(next.get(), 0x11, mib);

  child_.signal(SIGCONT);
  const auto deadline = std::chrono::steady_clock::now() + 30s;
  while (memory_->quarantined_bytes() > 0 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
    memory_->collect();
  }
  EXPECT_EQ(memory_->quarantined_bytes(), 0U) << "recycled after it was done";
  EXPECT_EQ(address_[mib - 1], std::byte{0xbd}) << "it did write";
  EXPECT_TRUE(std::all_of(next.get(), next.get() + mib, [](std::byte value) { return value == std::byte{0x11}; }));
  EXPECT_EQ(memory_->take(mib).get(), address_);
  child_.line().say("end");
  EXPECT_EQ(child_.wait(), 0);
}

TEST_F(StoppedPeer, holds_its_memory_until_its_death_is_reported) {
  child_.signal(SIGKILL);
  EXPECT_EQ(child_.wait(), -SIGKILL);
  memory_->collect();
  EXPECT_EQ(memory_->quarantined_bytes(), mib) << "memory cannot know by itself";
  memory_->ended(1);
  EXPECT_EQ(memory_->quarantined_bytes(), 0U);
  EXPECT_EQ(memory_->take(mib).get(), address_);
}

}  // namespace
}  // namespace tutti::shm
