// kept_store.hpp: what the keeper of the job's store keeps: the values, who waits, and which requests have taken effect.
// SPDX-License-Identifier: Apache-2.0
//
// Each request takes effect once, however often it arrives: a rank gives each request a slot that no other of its requests
// under way has, and the latest request of each slot is kept with its answer. A get or wait for a key that is not there is
// answered when somebody sets the key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "control/message.hpp"
#include "store/service.hpp"

namespace tutti::control {

class KeptStore {
 public:
  struct Answer {
    int to = 0;
    StoreAnswered message;
  };
  // The answers that are due now: to this rank, and to those that wait for what it has set.
  std::vector<Answer> handle(int from, const StoreAsked& message);
  // The rank waits for nothing any more.
  void forget_answers(int rank);
  [[nodiscard]] std::vector<int> clients() const;

  // For the next keeper, which goes on as if it had kept everything from the start.
  [[nodiscard]] std::vector<std::byte> encode() const;
  // Throws MalformedMessage.
  static KeptStore decode(std::span<const std::byte> bytes, int world_size);

 private:
  struct Served {  // the latest request of a slot
    std::uint64_t id = 0;
    StoreAnswered answer;
  };
  std::vector<Answer> serve(int from, const StoreAsked& message, Served& served);

  store::Service service_;
  std::map<int, std::map<std::uint32_t, Served>> served_;  // by rank and slot
};

}  // namespace tutti::control
