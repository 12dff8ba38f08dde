// breakage.hpp: a transport with injected errors, to test the checker.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/transport.hpp>

namespace tutti::sim {

enum class Breakage : std::uint8_t {
  none,
  flip,    // one byte of one message changes on its way
  drop,    // one message never arrives, and its sender is told that it did
  late,    // memory is written after the call that lent it has ended
  accuse,  // a link between healthy ranks is said to be broken
  deaf,    // a rank no longer looks at what arrives
};
inline constexpr int breakage_count = 6;
std::string_view name_of(Breakage breakage);
std::optional<Breakage> breakage_from_name(std::string_view name);

// The cluster's endpoint as something that a Runtime can own; breaks, if asked to, at the n-th message of this rank.
class LentTransport final : public Transport {
 public:
  struct Fault {
    Breakage breakage = Breakage::none;
    int after_messages = 0;
  };
  LentTransport(Transport& endpoint, const Fault& fault) : endpoint_(endpoint), fault_(fault) {}

  [[nodiscard]] std::string_view name() const override { return endpoint_.name(); }
  [[nodiscard]] int rank() const override { return endpoint_.rank(); }
  [[nodiscard]] int size() const override { return endpoint_.size(); }
  void listen(TransportListener* listener) override;
  void send(Transfer& transfer) override;
  void recv(Transfer& transfer) override { endpoint_.recv(transfer); }
  void cancel(Transfer& transfer) override { endpoint_.cancel(transfer); }
  void give_back(Transfer& receive) override { endpoint_.give_back(receive); }
  void forget(std::uint64_t group, std::uint64_t up_to) override { endpoint_.forget(group, up_to); }
  void post(int peer, std::span<const std::byte> message) override { endpoint_.post(peer, message); }
  void attach(int peer) override { endpoint_.attach(peer); }
  bool poll() override;
  void wait(TimePoint until, Events events) override { endpoint_.wait(until, events); }
  void wake() override { endpoint_.wake(); }
  void close(TimePoint deadline) override { endpoint_.close(deadline); }
  void abandon() override { endpoint_.abandon(); }

 private:
  [[nodiscard]] bool strikes(Breakage breakage) const {
    return fault_.breakage == breakage && sent_ == fault_.after_messages;
  }

  Transport& endpoint_;
  Fault fault_;
  TransportListener* listener_ = nullptr;
  int sent_ = 0;  // messages with a payload
  bool accused_ = false;
  std::vector<std::byte> altered_;
};

}  // namespace tutti::sim
