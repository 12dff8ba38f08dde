// hostile_ring_test.cpp: a rank of this host that writes nonsense into its ring is lost, and does no other harm.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>

#include "link/ring_link.hpp"
#include "tests/support/messages_world.hpp"

namespace tutti::messages {
namespace {

using link::RecordKind;
using testing::HasSubstr;

// Rank 0 is the test itself, which writes whatever it likes into its arena; rank 1 is a transport.
struct Impostor {
  Impostor() {
    auto networks = make_tcp_links(2, wire::Address::loopback(), link::TcpOptions{});
    const auto other = std::make_shared<shm::Arena>(shm::ArenaOptions{.bytes = 16 << 20});
    const std::vector addresses{arena->address(), other->address()};
    const std::uint64_t control_block = link::lay_out_control_block(*arena, 2);
    honest = std::make_unique<Messages>(
        MessagesSetup{.rank = 1,
                      .size = 2,
                      .clock = steady_clock(),
                      .network = std::move(networks[1]),
                      .local_link = std::make_unique<link::RingLink>(
                          link::RingSetup{.local_peers = std::make_shared<shm::LocalPeers>(other, 1, addresses),
                                          .control_blocks = {control_block, link::lay_out_control_block(*other, 2)},
                                          .options = small_ring}),
                      .local = {true, true}});
    honest->listen(&listener);
    network = std::move(networks[0]);
    own = std::make_unique<shm::LocalPeers>(arena, 0, addresses);
    control = &reinterpret_cast<link::RingControl*>(own->at(0, control_block, 2 * sizeof(link::RingControl)))[1];
    std::byte* const memory = arena->allocate(small_ring.ring_bytes, 4096);
    ring = link::RingWriter(memory, small_ring.ring_bytes / link::line_bytes, read_lines);
    ring_offset = arena->offset_of(memory);
  }

  template <class Head>
  void write(FrameType type, const Head& head, std::size_t payload_bytes = 0) {
    write({.kind = RecordKind::frame, .type = static_cast<std::uint8_t>(type), .head_bytes = sizeof head},
          bytes_of(head), payload_bytes);
  }
  // The beginning of a frame of which the whole payload has `total` bytes.
  void write_first(const Envelope& envelope, std::uint64_t total, std::size_t payload_bytes) {
    std::array<std::byte, sizeof total + sizeof envelope> ahead;
    std::memcpy(ahead.data(), &total, sizeof total);
    std::memcpy(ahead.data() + sizeof total, &envelope, sizeof envelope);
    const auto type = static_cast<std::uint8_t>(FrameType::full);
    write({.kind = RecordKind::first, .type = type, .head_bytes = sizeof envelope}, ahead, payload_bytes);
  }
  void write(link::RecordHead head, std::span<const std::byte> ahead, std::size_t payload_bytes) {
    std::byte* const place = ring.begin(ahead.size() + payload_bytes);
    std::memcpy(place, ahead.data(), ahead.size());
    head.bytes = static_cast<std::uint32_t>(ahead.size() + payload_bytes);
    ring.publish(head);
  }
  void show_ring(std::uint64_t offset) { control->ring_offset = offset; }

  std::shared_ptr<shm::Arena> arena = std::make_shared<shm::Arena>(shm::ArenaOptions{.bytes = 16 << 20});
  std::unique_ptr<Messages> honest;
  std::unique_ptr<link::TcpLink> network;  // never polled, but connections to it do not fail
  Recorder listener;
  std::unique_ptr<shm::LocalPeers> own;
  link::RingControl* control = nullptr;
  std::atomic<std::uint64_t> read_lines{0};
  link::RingWriter ring;
  std::uint64_t ring_offset = 0;
};

Envelope envelope_of(std::int64_t bytes) {
  return {.group = 3, .epoch = 2, .tag = 1, .channel = point_to_point_channel, .bytes = bytes};
}

struct Rts {
  RtsHead head;
  link::RingKey key;
};

struct Named {
  Envelope envelope;
  link::CellName cell;
};

struct Nonsense {
  const char* name;
  std::function<void(Impostor&)> write;
};

std::vector<Nonsense> all_nonsense() {
  const auto rts = [](std::uint64_t arena_offset, std::uint64_t word_offset) {
    return Rts{.head = {.envelope = envelope_of(100'000), .message = 1},
               .key = {.number = 1, .arena_offset = arena_offset, .word_offset = word_offset}};
  };
  constexpr std::uint64_t nowhere = link::RingKey::nowhere;
  Envelope other_channel = envelope_of(4), other_verb = envelope_of(4);
  other_channel.channel = 3;
  other_verb.signature.verb = static_cast<Verb>(200);
  return {
      {"a head cut short", [](Impostor& i) { i.write(FrameType::full, std::uint32_t{0}); }},
      {"a brief head cut short",
       [](Impostor& i) {
         i.write(FrameType::full, envelope_of(0));
         i.write(FrameType::brief, std::uint32_t{0});
       }},
      {"a brief head before a full one", [](Impostor& i) { i.write(FrameType::brief, BriefHead{}); }},
      {"a reply cut short", [](Impostor& i) { i.write(FrameType::fin, std::uint32_t{0}); }},
      {"an unknown frame", [](Impostor& i) { i.write(static_cast<FrameType>(14), Numbers{}); }},
      {"an unknown frame with a payload", [](Impostor& i) { i.write(static_cast<FrameType>(14), Numbers{}, 9); }},
      {"more credit than was spent", [](Impostor& i) { i.write(FrameType::credit, Numbers{.first = 1}); }},
      {"a negative size", [](Impostor& i) { i.write(FrameType::full, envelope_of(-1)); }},
      {"an unknown channel", [=](Impostor& i) { i.write(FrameType::full, other_channel, 4); }},
      {"an unknown verb", [=](Impostor& i) { i.write(FrameType::full, other_verb, 4); }},
      {"more than is eager", [](Impostor& i) { i.write_first(envelope_of(1 << 30), 1 << 30, 20); }},
      {"more than its first record says", [](Impostor& i) { i.write_first(envelope_of(40), 40, 41); }},
      {"a frame of a negative size", [](Impostor& i) { i.write_first(envelope_of(4), ~std::uint64_t{0}, 4); }},
      {"less than the head says", [](Impostor& i) { i.write(FrameType::full, envelope_of(40), 20); }},
      {"more than the head says", [](Impostor& i) { i.write(FrameType::full, envelope_of(4), 60); }},
      {"a continuation of nothing", [](Impostor& i) { i.write({.kind = RecordKind::more}, bytes_of(0), 0); }},
      {"an interrupted message",
       [](Impostor& i) {
         i.write_first(envelope_of(40), 40, 20);
         i.write(FrameType::full, envelope_of(4), 4);
       }},
      {"a continuation too long",
       [](Impostor& i) {
         i.write_first(envelope_of(40), 40, 20);
         i.write({.kind = RecordKind::more}, bytes_of(0), 50);
       }},
      {"a key of another size",
       [=](Impostor& i) {
         const auto whole = rts(nowhere, 0);
         i.write({.kind = RecordKind::frame, .type = static_cast<std::uint8_t>(FrameType::rts), .head_bytes = 80},
                 bytes_of(whole).first(80), 0);
       }},
      {"a key's word outside", [=](Impostor& i) { i.write(FrameType::rts, rts(nowhere, 1 << 30)); }},
      {"a key's word between words", [=](Impostor& i) { i.write(FrameType::rts, rts(nowhere, 4)); }},
      {"exposed memory outside", [=](Impostor& i) { i.write(FrameType::rts, rts((16 << 20) - 8, 0)); }},
      {"exposed memory far outside", [=](Impostor& i) { i.write(FrameType::rts, rts(nowhere - 8, 0)); }},
      {"a cell that nobody has laid out",
       [](Impostor& i) {
         const Named named{.envelope = envelope_of(40), .cell = {.owner = 0, .index = 2, .payload_bytes = 40}};
         i.write({.kind = RecordKind::frame, .in_cell = true, .type = 2, .head_bytes = sizeof(Envelope)},
                 bytes_of(named), 0);
       }},
      {"a cell's name cut short",
       [](Impostor& i) {
         i.write({.kind = RecordKind::frame, .in_cell = true, .type = 2, .head_bytes = sizeof(Envelope)},
                 bytes_of(envelope_of(40)), 8);
       }},
      {"a ring outside", [](Impostor& i) { i.ring_offset = 1 << 30; }},
      {"a ring between lines", [](Impostor& i) { i.ring_offset += 8; }},
  };
}

TEST(HostileRing, a_rank_that_writes_nonsense_is_lost_once) {
  for (const Nonsense& nonsense : all_nonsense()) {
    SCOPED_TRACE(nonsense.name);
    Impostor impostor;
    Parcel in = Parcel::from(0, 5, 40), late = Parcel::from(0, 5, 40), late_out = Parcel::to(0, 5, 40);
    Parcel anyone = Parcel::from(any_peer, 9, 40);
    impostor.honest->recv(*in.transfer);
    impostor.honest->recv(*anyone.transfer);
    nonsense.write(impostor);
    impostor.show_ring(impostor.ring_offset);
    for (int i = 0; i < 5; ++i) impostor.honest->poll();
    ASSERT_EQ(impostor.listener.losses.size(), 1u);
    EXPECT_EQ(impostor.listener.losses[0].first, 0);
    EXPECT_TRUE(in.has_failed());
    EXPECT_THAT(in.transfer->error, HasSubstr("rank 1: lost rank 0"));
    EXPECT_TRUE(in.is_all(std::byte{0}) && anyone.is_pending());
    impostor.honest->recv(*late.transfer);
    impostor.honest->send(*late_out.transfer);
    EXPECT_TRUE(late.has_failed() && late_out.has_failed());
    EXPECT_EQ(impostor.honest->held_bytes(), 0);
    impostor.honest->cancel(*anyone.transfer);
  }
}

TEST(HostileRing, an_rts_for_memory_that_is_not_there_fails_its_receive_only) {
  Impostor impostor;
  auto* const word = reinterpret_cast<std::atomic<std::uint64_t>*>(impostor.arena->allocate(4096, 4096));
  word->store(7);
  impostor.write(FrameType::rts, Rts{.head = {.envelope = envelope_of(100'000), .message = 5},
                                     .key = {.number = 7,
                                             .address = 4096,
                                             .arena_offset = link::RingKey::nowhere,
                                             .word_offset = impostor.arena->offset_of(word)}});
  impostor.write(FrameType::fragment, Numbers{.first = 99}, 10);  // of a receive that does not exist
  impostor.write(FrameType::full, envelope_of(4), 4);
  impostor.show_ring(impostor.ring_offset);
  Parcel large = Parcel::from(0, 1, 100'000), small = Parcel::from(0, 1, 4);
  impostor.honest->recv(*large.transfer);
  impostor.honest->recv(*small.transfer);
  for (int i = 0; i < 5; ++i) impostor.honest->poll();
  EXPECT_TRUE(large.has_failed());
  EXPECT_THAT(large.transfer->error, HasSubstr("rank 0 cannot be read"));
  EXPECT_TRUE(small.is_done());
  EXPECT_TRUE(impostor.listener.losses.empty());
}

}  // namespace
}  // namespace tutti::messages
