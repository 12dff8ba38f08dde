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

#include "forwarding_transport.hpp"

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
class LentTransport final : public messages::ForwardingTransport {
 public:
  struct Fault {
    Breakage breakage = Breakage::none;
    int after_messages = 0;
  };
  LentTransport(Transport& endpoint, const Fault& fault) : ForwardingTransport(endpoint), fault_(fault) {}

  void listen(TransportListener* listener) override;
  void send(Transfer& transfer) override;
  bool poll() override;

 private:
  [[nodiscard]] bool strikes(Breakage breakage) const {
    return fault_.breakage == breakage && sent_ == fault_.after_messages;
  }

  Fault fault_;
  TransportListener* listener_ = nullptr;
  int sent_ = 0;  // messages with a payload
  bool accused_ = false;
  std::vector<std::byte> altered_;
};

}  // namespace tutti::sim
