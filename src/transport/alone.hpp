// alone.hpp: the transport of a world of one: messages to oneself, no socket.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <mutex>

#include <tutti/transport.hpp>

#include "transport/matching_queue.hpp"

namespace tutti::transport {

// A message that nobody receives yet is copied, so that its send ends at once.
class AloneTransport final : public Transport {
 public:
  explicit AloneTransport(const Clock& clock) : clock_(clock), matching_queue_(0) {}

  [[nodiscard]] std::string_view name() const override { return "memory"; }
  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int size() const override { return 1; }
  void listen(TransportListener* listener) override { listener_ = listener; }
  void send(Transfer& transfer) override;
  void recv(Transfer& transfer) override;
  void cancel(Transfer& transfer) override;
  void give_back(Transfer& receive) override;
  void forget(std::uint64_t group, std::uint64_t up_to_sequence) override;
  void post(int, std::span<const std::byte>) override {}
  void attach(int) override {}
  bool poll() override { return false; }
  void wait(TimePoint until, Events events) override;
  void wake() override;
  void close(TimePoint) override {}
  void abandon() override {}

 private:
  const Clock& clock_;
  TransportListener* listener_ = nullptr;
  MatchingQueue matching_queue_;
  std::mutex mutex_;
  std::condition_variable woken_;
};

}  // namespace tutti::transport
