// program.cpp: the plan of a rank as the simulator runs it.
// SPDX-License-Identifier: Apache-2.0
#include "sim/program.hpp"

#include <algorithm>
#include <stdexcept>
#include <unordered_map>

#include "sim/draft.hpp"

namespace tutti::sim {

Exchanges::Exchanges(std::span<const Task> tasks, Work direction) {
  for (std::uint32_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].work == direction) tasks_.push_back(i);
  }
  std::sort(tasks_.begin(), tasks_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(tasks[a].shift, tasks[a].tag) < std::pair(tasks[b].shift, tasks[b].tag);
  });
  for (std::uint32_t i = 0; i < tasks_.size(); ++i) {
    const std::int32_t shift = tasks[tasks_[i]].shift;
    if (peers_.empty() || peers_.back().shift != shift) peers_.push_back({shift, i});
  }
}

std::uint32_t Exchanges::task(std::int32_t shift, std::uint32_t tag) const {
  const auto found = std::lower_bound(peers_.begin(), peers_.end(), shift,
                                      [](const Peer& peer, std::int32_t wanted) { return peer.shift < wanted; });
  if (found == peers_.end() || found->shift != shift || found->begin + tag >= tasks_.size()) {
    throw std::logic_error("a plan sends a message that no plan receives");
  }
  return tasks_[found->begin + tag];
}

Program compile(const Plan& plan, std::int64_t element_bytes, const Table& table) {
  Draft draft = write_out(plan, element_bytes, table);
  join_twins(draft);

  Program program;
  const std::size_t count = draft.nodes.size();
  program.tasks.resize(count + 1);
  // Tags anew: the messages of sub-requests are numbered along with the others, on both sides in the same order.
  std::unordered_map<int, std::uint32_t> sent, received;
  for (std::size_t i = 0; i < count; ++i) {
    const Draft::Node& node = draft.nodes[i];
    Task& task = program.tasks[i];
    task.work = node.work;
    task.bytes = node.bytes;
    task.reduced_bytes = node.reduced_bytes;
    if (node.work != Work::send && node.work != Work::recv) continue;
    task.shift = (node.peer - plan.spec.rank + plan.spec.size) % plan.spec.size;
    task.tag = (node.work == Work::send ? sent : received)[node.peer]++;
  }
  for (const Draft::Edge& edge : draft.edges) {
    ++program.tasks[edge.before + 1].unlock_begin;
    ++program.tasks[edge.after].needs;
  }
  for (std::size_t i = 1; i <= count; ++i) program.tasks[i].unlock_begin += program.tasks[i - 1].unlock_begin;
  program.unlocks.resize(draft.edges.size());
  std::vector<std::uint32_t> next(count);
  for (std::size_t i = 0; i < count; ++i) next[i] = program.tasks[i].unlock_begin;
  for (const Draft::Edge& edge : draft.edges) program.unlocks[next[edge.before]++] = edge.after;
  return program;
}

}  // namespace tutti::sim
