// timeline.hpp: when each message of a plan is under way: the plans of all ranks run in virtual time.
// SPDX-License-Identifier: Apache-2.0
//
// The model: a rank sends one message at a time, receives one at a time and reduces one piece at a time; the ranks of a host
// share its link to the others.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/select.hpp"

namespace tutti::sim {

struct Message {
  int from = 0, to = 0;
  std::int64_t bytes = 0;
  double begin = 0, end = 0;  // seconds: the sender starts; the receiver has it
  int slot = 0;               // from 0: its sender and its receiver were through with those of earlier slots
  bool reduced = false;       // its receiver reduces it; otherwise it is kept as it is
  bool between = false;       // leaves the host
};

struct LocalWork {
  int rank = 0;
  std::int64_t bytes = 0;
  double begin = 0, end = 0;
};

struct Timeline {
  int ranks = 0;
  std::vector<int> node_of{};       // as in Spec
  std::vector<Message> messages{};  // by their begin
  std::vector<LocalWork> reductions{};
  double seconds = 0;
  int slots = 0;
  std::int64_t rounds = 0;  // messages that had to come one after the other
};

/// `spec` is that of any rank; sub-requests are written out, their algorithms chosen by `table` as the engine does.
Timeline rehearse(const Spec& spec, std::int64_t element_bytes, const Table& table);

}  // namespace tutti::sim
