// side.hpp: one rank's arrays in one call, and what must be in them afterwards.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "group/core.hpp"
#include "scenario.hpp"

namespace tutti::sim {

// Stays where it is: requests point into it.
class Side {
 public:
  Side(const ScenarioCall& call, int rank, int size);

  [[nodiscard]] Request request() { return part_->request(); }
  [[nodiscard]] GroupCore::Message message(Duration timeout);
  // After the call ended well: what is wrong with the arrays.
  [[nodiscard]] std::optional<std::string> difference() const;
  // After it failed: whether anything but an output was written.
  [[nodiscard]] std::optional<std::string> damage() const;
  void scribble(std::byte value = std::byte{0x5e});
  [[nodiscard]] std::uint64_t fingerprint() const;

 private:
  [[nodiscard]] bool sends() const { return message_->from == rank_; }

  int rank_;
  std::optional<Message> message_;
  std::unique_ptr<contract::Part> part_;           // of a collective,
  std::unique_ptr<contract::GuardedArray> array_;  // of a message
};

// Makes a request that must be refused before anything is sent.
void spoil(Request& request, int size);

}  // namespace tutti::sim
