// program.cpp: the plan of a rank as the simulator runs it.
// SPDX-License-Identifier: Apache-2.0
#include "sim/program.hpp"

#include <algorithm>
#include <stdexcept>
#include <unordered_map>

#include "sim/expanded_plan.hpp"

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

namespace {

// `tasks` has one more than there are.
void link(Program& program, const std::vector<ExpandedPlan::Edge>& edges) {
  const std::size_t count = program.size();
  for (const ExpandedPlan::Edge& edge : edges) {
    ++program.tasks[edge.before + 1].unlock_begin;
    ++program.tasks[edge.after].needs;
  }
  for (std::size_t i = 1; i <= count; ++i) program.tasks[i].unlock_begin += program.tasks[i - 1].unlock_begin;
  program.unlocks.resize(edges.size());
  std::vector<std::uint32_t> next(count);
  for (std::size_t i = 0; i < count; ++i) next[i] = program.tasks[i].unlock_begin;
  for (const ExpandedPlan::Edge& edge : edges) program.unlocks[next[edge.before]++] = edge.after;
}

// How many messages there are for each peer, by its shift.
std::unordered_map<std::int32_t, std::uint32_t> messages_of(const Program& program, Work direction) {
  std::unordered_map<std::int32_t, std::uint32_t> counts;
  for (std::size_t i = 0; i < program.size(); ++i) {
    if (program.tasks[i].work == direction) ++counts[program.tasks[i].shift];
  }
  return counts;
}

}  // namespace

Program compile(const Plan& plan, std::int64_t element_bytes, const Table& table) {
  ExpandedPlan expanded = write_out(plan, element_bytes, table);
  merge_equivalent_nodes(expanded);

  Program program;
  const std::size_t count = expanded.nodes.size();
  program.tasks.resize(count + 1);
  // Tags anew: the messages of sub-requests are numbered along with the others, on both sides in the same order.
  std::unordered_map<int, std::uint32_t> sent, received;
  for (std::size_t i = 0; i < count; ++i) {
    const ExpandedPlan::Node& node = expanded.nodes[i];
    Task& task = program.tasks[i];
    task.work = node.work;
    task.bytes = node.bytes;
    task.reduced_bytes = node.reduced_bytes;
    task.bytes_since = node.bytes_since;
    if (node.work != Work::send && node.work != Work::recv) continue;
    task.shift = (node.peer - plan.spec.rank + plan.spec.size) % plan.spec.size;
    task.tag = (node.work == Work::send ? sent : received)[node.peer]++;
  }
  link(program, expanded.edges);
  return program;
}

Program repeated(const Program& program, int calls) {
  auto sends = messages_of(program, Work::send), recvs = messages_of(program, Work::recv);
  const auto size = static_cast<std::uint32_t>(program.size());
  Program result;
  std::vector<ExpandedPlan::Edge> edges;
  for (std::uint32_t call = 0; call < static_cast<std::uint32_t>(calls); ++call) {
    const std::uint32_t begin = call * (size + 1), entry = begin - 1, exit = begin + size;
    const bool first = call == 0, last = call + 1 == static_cast<std::uint32_t>(calls);
    for (std::uint32_t i = 0; i < size; ++i) {
      Task task = program.tasks[i];
      if (task.work == Work::send) task.tag += call * sends[task.shift];
      if (task.work == Work::recv) task.tag += call * recvs[task.shift];
      if (task.needs == 0 && !first) edges.push_back({entry, begin + i});
      for (const std::uint32_t next : program.unlocked_by(i)) edges.push_back({begin + i, begin + next});
      if (program.unlocked_by(i).empty() && !last) edges.push_back({begin + i, exit});
      task.needs = task.unlock_begin = 0;
      result.tasks.push_back(task);
    }
    if (size == 0 && !first && !last) edges.push_back({entry, exit});
    result.tasks.push_back({.work = last ? Work::join : Work::call});  // the last one is the end of all
  }
  link(result, edges);
  return result;
}

}  // namespace tutti::sim
