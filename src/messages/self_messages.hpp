// self_messages.hpp: messages of a rank to itself.
// SPDX-License-Identifier: Apache-2.0
//
// They are delivered by the next poll, because the listener is told of them there. One that no receive was posted for is copied while
// the credit lasts; otherwise it stays where it is, and its send ends when it is received.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <tutti/link.hpp>

#include "messages/matching_queue.hpp"

namespace tutti::messages {

class SelfMessages {
 public:
  SelfMessages(int rank, MatchingQueue& queue, const Link::Limits& limits)
      : rank_(rank), queue_(queue), eager_bytes_max_(limits.eager_bytes_max), credit_bytes_(limits.credit_bytes) {}

  void send(Transfer& transfer);
  void post(std::span<const std::byte> control) { controls_.emplace_back(control.begin(), control.end()); }
  // A send that was not delivered, or not received yet.
  void cancel(Transfer& transfer);
  // The same, unless a probe has found its message. False: nothing has happened.
  [[nodiscard]] bool withdraw(Transfer& transfer);
  void deliver(TransportListener& listener);
  // From now on no message is received; those of collectives are.
  void refuse_messages() { refuses_messages_ = true; }
  // Hands a message that was kept to a receive, or to none.
  void take(UnexpectedMessage& message, Transfer* receive);
  [[nodiscard]] bool is_idle() const { return sends_.empty() && controls_.empty(); }
  [[nodiscard]] bool has_sends() const { return !sends_.empty(); }

 private:
  [[nodiscard]] bool deliver(Transfer& send, TransportListener& listener);
  [[nodiscard]] bool refuse(Transfer& send) const;

  int rank_;
  MatchingQueue& queue_;
  std::int64_t eager_bytes_max_;
  std::int64_t credit_bytes_;  // for copies that no receive has taken
  bool refuses_messages_ = false;
  std::vector<Transfer*> sends_;
  std::vector<std::vector<std::byte>> controls_;
};

}  // namespace tutti::messages
