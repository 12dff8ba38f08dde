// host_hostile_test.cpp: a rank of this host that writes nonsense into its ring is lost, and does no other harm.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "transport/host_records.hpp"
#include "transport/transport_world.hpp"

namespace tutti::transport {
namespace {

using host::RecordKind;
using testing::HasSubstr;

// Rank 0 is the test itself, which writes whatever it likes into its arena; rank 1 is a transport.
struct Impostor {
  Impostor() {
    auto inner = make_tcp_endpoints(2, wire::Address::loopback(), TcpOptions{});
    const auto other = std::make_shared<shm::Arena>(shm::ArenaOptions{.bytes = 16 << 20});
    const std::vector addresses{arena->address(), other->address()};
    const std::uint64_t control_block = lay_out_control_block(*arena, 2);
    honest =
        std::make_unique<HostTransport>(HostSetup{.local_peers = std::make_shared<shm::LocalPeers>(other, 1, addresses),
                                                  .inner = std::move(inner[1]),
                                                  .control_blocks = {control_block, lay_out_control_block(*other, 2)},
                                                  .clock = steady_clock(),
                                                  .options = small_host});
    honest->listen(&listener);
    listener_socket = std::move(inner[0]);
    own = std::make_unique<shm::LocalPeers>(arena, 0, addresses);
    notice = &reinterpret_cast<host::Notice*>(own->at(0, control_block, 2 * sizeof(host::Notice)))[1];
    std::byte* const memory = arena->allocate(small_host.ring_bytes, 4096);
    ring = host::RingWriter(memory, small_host.ring_bytes / host::line_bytes, read_lines);
    ring_offset = arena->offset_of(memory);
  }

  template <class Body>
  void write(RecordKind kind, const Body& body, std::size_t payload_bytes = 0) {
    std::byte* const place = ring.begin(sizeof body + payload_bytes);
    std::memcpy(place, &body, sizeof body);
    ring.publish({.kind = kind, .bytes = static_cast<std::uint32_t>(sizeof body + payload_bytes)});
  }
  void show_ring(std::uint64_t offset) { notice->ring_offset = offset; }

  std::shared_ptr<shm::Arena> arena = std::make_shared<shm::Arena>(shm::ArenaOptions{.bytes = 16 << 20});
  std::unique_ptr<HostTransport> honest;
  std::unique_ptr<TcpTransport> listener_socket;  // never polled, but connections to it do not fail
  Recorder listener;
  std::unique_ptr<shm::LocalPeers> own;
  host::Notice* notice = nullptr;
  std::atomic<std::uint64_t> read_lines{0};
  host::RingWriter ring;
  std::uint64_t ring_offset = 0;
};

Envelope envelope_of(std::int64_t bytes) {
  return {.group = 3, .epoch = 2, .tag = 1, .channel = point_to_point_channel, .bytes = bytes};
}

struct Nonsense {
  const char* name;
  std::function<void(Impostor&)> write;
};

std::vector<Nonsense> all_nonsense() {
  const auto rts = [](std::uint64_t arena_offset, std::uint64_t remote_key_offset) {
    return host::RtsBody{.envelope = envelope_of(100'000),
                         .rts = {.message = 1, .arena_offset = arena_offset, .remote_key_offset = remote_key_offset}};
  };
  Envelope other_channel = envelope_of(4), other_verb = envelope_of(4);
  other_channel.channel = 2;
  other_verb.signature.verb = static_cast<Verb>(200);
  return {
      {"a head cut short", [](Impostor& i) { i.write(RecordKind::full, std::uint32_t{0}); }},
      {"a brief head cut short", [](Impostor& i) { i.write(RecordKind::brief, std::uint32_t{0}); }},
      {"a note cut short", [](Impostor& i) { i.write(RecordKind::done, std::uint32_t{0}); }},
      {"a negative size", [](Impostor& i) { i.write(RecordKind::full, envelope_of(-1)); }},
      {"an unknown lane", [=](Impostor& i) { i.write(RecordKind::full, other_channel, 4); }},
      {"an unknown verb", [=](Impostor& i) { i.write(RecordKind::full, other_verb, 4); }},
      {"more than is eager", [](Impostor& i) { i.write(RecordKind::full, envelope_of(1 << 30)); }},
      {"more than the head says", [](Impostor& i) { i.write(RecordKind::full, envelope_of(4), 60); }},
      {"a continuation of nothing", [](Impostor& i) { i.write(RecordKind::more, std::uint32_t{0}); }},
      {"an interrupted message",
       [](Impostor& i) {
         i.write(RecordKind::full, envelope_of(40), 20);
         i.write(RecordKind::full, envelope_of(4), 4);
       }},
      {"a continuation too long",
       [](Impostor& i) {
         i.write(RecordKind::full, envelope_of(40), 20);
         i.write(RecordKind::more, std::uint64_t{0}, 50);
       }},
      {"a permit outside", [=](Impostor& i) { i.write(RecordKind::rts, rts(host::Rts::nowhere, 1 << 30)); }},
      {"a permit between words", [=](Impostor& i) { i.write(RecordKind::rts, rts(host::Rts::nowhere, 4)); }},
      {"an offer outside", [=](Impostor& i) { i.write(RecordKind::rts, rts((16 << 20) - 8, 0)); }},
      {"an offer far outside", [=](Impostor& i) { i.write(RecordKind::rts, rts(host::Rts::nowhere - 8, 0)); }},
      {"a ring outside", [](Impostor& i) { i.ring_offset = 1 << 30; }},
      {"a ring between lines", [](Impostor& i) { i.ring_offset += 8; }},
  };
}

TEST(HostHostile, whoever_writes_nonsense_is_lost_once) {
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

TEST(HostHostile, an_rts_for_memory_that_is_not_there_fails_its_receive_only) {
  Impostor impostor;
  auto* const remote_key = reinterpret_cast<std::atomic<std::uint64_t>*>(impostor.arena->allocate(4096, 4096));
  remote_key->store(7);
  impostor.write(RecordKind::rts, host::RtsBody{.envelope = envelope_of(100'000),
                                                .rts = {.message = 7,
                                                        .address = 4096,
                                                        .arena_offset = host::Rts::nowhere,
                                                        .remote_key_offset = impostor.arena->offset_of(remote_key)}});
  impostor.write(RecordKind::fragment, host::FragmentHead{.message = 99}, 10);  // of a receive that nobody knows
  impostor.write(RecordKind::full, envelope_of(4), 4);
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
}  // namespace tutti::transport
