// action_queue.hpp: what a rank has to do, in the order in which it came up.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "sim/cluster.hpp"
#include "sim/program.hpp"

namespace tutti::sim {

enum class Action : std::uint8_t { enter, send, rts, cts, send_after_cts, receive, compute };

struct Assignment {
  std::uint32_t task : 28;
  std::uint32_t action : 4;
  [[nodiscard]] Action what() const { return static_cast<Action>(action); }
};

class ActionQueue {
 public:
  [[nodiscard]] bool empty() const { return head_ == queue_.size(); }
  [[nodiscard]] Assignment first() const { return queue_[head_]; }
  Assignment pop() { return queue_[head_++]; }
  void push(std::uint32_t task, Action action) {
    if (empty()) {
      queue_.clear();
      head_ = 0;
    }
    queue_.push_back({.task = task & 0xfffffffu, .action = static_cast<std::uint32_t>(action) & 0xfu});
  }

 private:
  std::vector<Assignment> queue_;  // from head_ on
  std::size_t head_ = 0;
};

/// How long a core takes for a job.
inline double seconds_of(Action action, const Task& task, const Cluster& cluster) {
  switch (action) {
    case Action::enter: return cluster.call;
    case Action::compute:
      return cluster.copy.seconds(task.bytes, task.bytes_since) +
             cluster.reduce.seconds(task.reduced_bytes, task.bytes_since);
    case Action::rts:
    case Action::cts: return cluster.speed.overhead;
    default: return cluster.speed.overhead + cluster.throughput_of(task.bytes).seconds(task.bytes, task.bytes_since);
  }
}

}  // namespace tutti::sim
