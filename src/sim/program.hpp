// program.hpp: the plan of a rank as the simulator runs it: tasks with their costs and dependencies.
// SPDX-License-Identifier: Apache-2.0
//
// A program is made from a plan and keeps everything that time depends on:
//  1. Sub-collectives are expanded: their plans replace the call, between two joins.
//  2. Peers are counted from the own rank, so that ranks that do the same have equal programs and share one.
//  3. Local steps with the same predecessors and successors are one task with the sum of their work.
// Several calls in a row are one program, too: a rank that has ended one enters the next.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/plan.hpp"
#include "plan/select.hpp"

namespace tutti::sim {

enum class Work : std::uint8_t { send, recv, local, join, call };  // call: a rank enters the next one

struct Task {
  Work work = Work::join;
  std::uint32_t needs = 0;
  std::uint32_t unlock_begin = 0;  // its successors are unlocks[unlock_begin … the next task's)
  std::int32_t shift = 0;          // send, recv: peer = (rank + shift) mod size
  std::uint32_t tag = 0;           // the number of the message among those of this pair and direction
  std::int64_t bytes = 0;          // of the message; local: copied
  std::int64_t reduced_bytes = 0;
  std::int64_t bytes_since = 0;  // reuse distance
  /// Without bytes_since, which follows from the others, and is rounded.
  friend bool operator==(const Task& a, const Task& b) {
    return a.work == b.work && a.needs == b.needs && a.unlock_begin == b.unlock_begin && a.shift == b.shift &&
           a.tag == b.tag && a.bytes == b.bytes && a.reduced_bytes == b.reduced_bytes;
  }
};

/// The tasks of one direction by peer and tag.
class Exchanges {
 public:
  Exchanges() = default;
  Exchanges(std::span<const Task> tasks, Work direction);
  [[nodiscard]] std::uint32_t task(std::int32_t shift, std::uint32_t tag) const;

 private:
  struct Peer {
    std::int32_t shift;
    std::uint32_t begin;
  };
  std::vector<Peer> peers_;  // by shift
  std::vector<std::uint32_t> tasks_;
};

struct Program {
  std::vector<Task> tasks;  // one more than there are: the end of the last one's successors
  std::vector<std::uint32_t> unlocks;
  Exchanges sends, recvs;
  [[nodiscard]] std::size_t size() const { return tasks.size() - 1; }
  [[nodiscard]] std::span<const std::uint32_t> unlocked_by(std::uint32_t task) const {
    return {unlocks.data() + tasks[task].unlock_begin, unlocks.data() + tasks[task + 1].unlock_begin};
  }
  /// Without the indices, which follow.
  friend bool operator==(const Program& a, const Program& b) { return a.tasks == b.tasks && a.unlocks == b.unlocks; }
};

/// The program of `plan`. Plans of sub-requests are chosen by `table`, as the engine does.
Program compile(const Plan& plan, std::int64_t element_bytes, const Table& table);

/// So many calls of `program`, each entered when all of the one before has ended on this rank.
Program repeated(const Program& program, int calls);

}  // namespace tutti::sim
