// messages_world.hpp: a small world of any transport in one process, for the contract that all transports keep.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tutti/transport.hpp>

#include "link/ring_link.hpp"
#include "link/tcp_link.hpp"
#include "messages/matching_queue.hpp"
#include "messages/messages.hpp"

namespace tutti::messages {

struct Recorder final : TransportListener {
  Verdict arrived(int peer, const Envelope& envelope) override { return verdict(peer, envelope); }
  void control(int peer, std::span<const std::byte> message) override {
    controls.emplace_back(peer, std::vector(message.begin(), message.end()));
  }
  void lost(int peer, std::string_view reason) override { losses.emplace_back(peer, reason); }

  std::function<Verdict(int, const Envelope&)> verdict = [](int, const Envelope&) { return Verdict::keep; };
  std::vector<std::pair<int, std::vector<std::byte>>> controls;
  std::vector<std::pair<int, std::string>> losses;
};

// n endpoints, driven by the thread of the test.
class MessagesWorld {
 public:
  virtual ~MessagesWorld() = default;
  virtual Messages& at(int rank) = 0;
  virtual const Clock& clock() = 0;
  // Lets every living rank poll once or so. True if anything moved.
  virtual bool step() = 0;
  // Steps until the condition holds; false if it does not for a long time.
  virtual bool drive(const std::function<bool()>& until) = 0;
  // Steps until nothing moves any more.
  virtual void settle() = 0;
  // The rank is gone without a word.
  virtual void kill(int rank) = 0;
  std::int64_t held_bytes(int rank) { return at(rank).held_bytes(); }

  std::vector<Recorder> listeners;
  std::int64_t eager_bytes_max = 0;
  std::int64_t credit_bytes = 0;
};

struct WorldKind {
  const char* name;
  std::unique_ptr<MessagesWorld> (*make)(int size);
};
std::vector<WorldKind> all_world_kinds();

std::vector<std::unique_ptr<link::TcpLink>> make_tcp_links(int size, const wire::Address& address,
                                                           const link::TcpOptions& options);

// Small limits, so that small tests reach every path.
inline constexpr link::RingOptions small_ring{.eager_bytes_max = 4096,
                                              .credit_bytes = 64 << 10,
                                              .ring_bytes = 16 << 10,
                                              .chunk_bytes = 1000,
                                              .get_bytes_per_poll = 100'000};
struct RingWorldOptions {
  link::RingOptions ring = small_ring;
  int ranks_per_host = 1 << 20;                       // the others are reached over tcp
  std::vector<std::shared_ptr<shm::Arena>> arenas{};  // of each rank, where a test needs them
};
std::vector<std::unique_ptr<Messages>> make_ring_endpoints(int size, const RingWorldOptions& options);

class MessagesContract : public testing::TestWithParam<WorldKind> {
 protected:
  static std::unique_ptr<MessagesWorld> world_of(int size) { return GetParam().make(size); }
};

// A message to send or room to receive one, with a margin on both sides that must stay as it is.
class Parcel {
 public:
  // What to send: bytes that depend on the seed.
  static Parcel to(int peer, std::uint32_t tag, std::int64_t bytes, std::uint64_t seed = 0);
  static Parcel from(int peer, std::uint32_t tag, std::int64_t bytes);
  // The same in the collective channel.
  Parcel& of_call(std::uint64_t sequence, std::uint32_t phase = 0);

  [[nodiscard]] bool is_pending() const { return transfer->state == Transfer::State::pending; }
  [[nodiscard]] bool is_done() const { return transfer->state == Transfer::State::done; }
  [[nodiscard]] bool has_failed() const { return transfer->state == Transfer::State::failed; }
  [[nodiscard]] bool holds(std::uint64_t seed) const;  // what to(…, seed) sent
  [[nodiscard]] bool is_all(std::byte value) const;
  void fill(std::byte value);
  [[nodiscard]] bool margins_are_whole() const;

  std::unique_ptr<Transfer> transfer;  // in place while the parcel moves

 private:
  Parcel(int peer, std::uint32_t tag, std::int64_t bytes);

  std::vector<std::byte> memory_;
};

}  // namespace tutti::messages
