// workload.cpp: the programs of all ranks for one call.
// SPDX-License-Identifier: Apache-2.0
#include "sim/workload.hpp"

#include <algorithm>
#include <stdexcept>
#include <unordered_map>

#include "base/hash.hpp"

namespace tutti::sim {

namespace {

bool is_in_place(Verb verb) { return keeps_shape(verb) && verb != Verb::permute; }

std::uint64_t hash_of(const Program& program) {
  Hash hash;
  for (const Task& task : program.tasks) {
    hash.add(std::uint64_t(task.work) | std::uint64_t(task.needs) << 8 | std::uint64_t(task.tag) << 32);
    hash.add(std::uint64_t(task.bytes) ^ std::uint64_t(task.reduced_bytes) << 20 ^ std::uint64_t(task.shift) << 44);
  }
  return hash.value();
}

Spec of_rank(Spec spec, int rank) {
  spec.rank = rank;
  return spec;
}

// With what all workloads of a question have in common.
Workload empty_workload(const Spec& spec, const Question& question) {
  return {.ranks = spec.size, .period = spec.size, .calls = question.calls, .programs = {}, .program_of = {}};
}

void finish(Workload& workload) {
  for (Program& program : workload.programs) {
    if (workload.calls > 1) program = repeated(program, workload.calls);
    const std::span<const Task> tasks{program.tasks.data(), program.size()};
    program.sends = Exchanges(tasks, Work::send);
    program.recvs = Exchanges(tasks, Work::recv);
  }
}

Workload rotating_workload(const Spec& spec, const Question& question, const Cluster& cluster, const Table& table) {
  Workload workload = empty_workload(spec, question);
  workload.programs.push_back(compile(make_plan(spec), question.element_bytes, table));
  // A test compares all ranks for small sizes; here a few must do.
  for (const int rank : {1, spec.size / 2, spec.size - 1}) {
    if (compile(make_plan(of_rank(spec, rank)), question.element_bytes, table) != workload.programs[0]) {
      throw std::logic_error("plans said to rotate do not");
    }
  }
  if (cluster.uniform() && !question.every_rank) workload.period = cluster.ranks_per_host;
  workload.program_of.assign(static_cast<std::size_t>(workload.period), 0);
  return workload;
}

// From what a few ranks have to do; the root counts once.
std::int64_t estimated_steps(const Spec& spec, const Question& question, const Table& table) {
  const auto steps_of = [&](int rank) {
    const Plan plan = make_plan(of_rank(spec, rank));
    return static_cast<std::int64_t>(std::max(plan.steps.size(), compile(plan, question.element_bytes, table).size()));
  };
  std::int64_t most = 0;
  for (const int rank : {1, spec.size / 3, spec.size / 2, spec.size - 1}) {
    if (rank > 0 && rank < spec.size) most = std::max(most, steps_of(rank));
  }
  return steps_of(0) + most * (spec.size - 1);
}

}  // namespace

std::int64_t Workload::task_count() const {
  std::int64_t sum = 0;
  for (int rank = 0; rank < period; ++rank) sum += static_cast<std::int64_t>(of(rank).size());
  return sum;
}

Traffic traffic_of(const Workload& workload) {
  std::vector<Traffic> of_program(workload.programs.size());
  for (std::size_t i = 0; i < of_program.size(); ++i) {
    for (const Task& task : workload.programs[i].tasks) {
      if (task.work != Work::send) continue;
      ++of_program[i].rank_messages;
      of_program[i].rank_bytes += task.bytes;
    }
  }
  Traffic traffic;
  for (const std::uint32_t program : workload.program_of) {
    traffic.messages += of_program[program].rank_messages * (workload.ranks / workload.period);
    traffic.rank_messages = std::max(traffic.rank_messages, of_program[program].rank_messages);
    traffic.rank_bytes = std::max(traffic.rank_bytes, of_program[program].rank_bytes);
  }
  return traffic;
}

Spec spec_of(const Question& question, const Cluster& cluster) {
  const auto ceil_divide = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
  Spec spec{.verb = question.verb, .algorithm = question.choice.algorithm, .size = cluster.ranks};
  spec.count = std::max<std::int64_t>(1, ceil_divide(question.bytes, question.element_bytes));
  if (has_blocks(question.verb)) spec.count = ceil_divide(spec.count, spec.size);
  // Blocks that differ by an element would make every rank's plan another. For many ranks an element is nothing, beside
  // what a message costs.
  constexpr int many_ranks = 64;
  if (question.verb == Verb::all_reduce && spec.algorithm == Algorithm::ring && spec.size > many_ranks &&
      spec.count > spec.size) {
    spec.count = ceil_divide(spec.count, spec.size) * spec.size;
  }
  if (question.verb == Verb::barrier) spec.count = 0;
  if (question.verb == Verb::permute) {
    for (int rank = 0; rank < spec.size; ++rank) spec.pairs.emplace_back(rank, (rank + 1) % spec.size);
  }
  spec.in_place = is_in_place(question.verb);
  spec.segment = question.choice.segment(question.element_bytes);
  if (cluster.hosts() > 1) spec.node_of = cluster.node_of();
  return spec;
}

bool rotates(const Spec& spec) {
  if (spec.size < 2 || !spec.counts.empty() || has_root(spec.verb)) return false;
  switch (spec.algorithm) {
    case Algorithm::ring: return spec.verb != Verb::all_reduce || spec.count % spec.size == 0;
    case Algorithm::direct: return spec.verb != Verb::permute;
    case Algorithm::pairwise:
    case Algorithm::dissemination: return true;
    default: return false;
  }
}

std::optional<Workload> make_workload(const Question& question, const Cluster& cluster, const Table& table) {
  const Spec spec = spec_of(question, cluster);
  if (rotates(spec)) {
    Workload workload = rotating_workload(spec, question, cluster, table);
    if (workload.task_count() * question.calls > question.tasks_max) return std::nullopt;
    finish(workload);
    return workload;
  }
  if (estimated_steps(spec, question, table) * question.calls > question.tasks_max) return std::nullopt;
  Workload workload = empty_workload(spec, question);
  std::unordered_multimap<std::uint64_t, std::uint32_t> known;
  for (int rank = 0; rank < spec.size; ++rank) {
    Program program = compile(make_plan(of_rank(spec, rank)), question.element_bytes, table);
    const std::uint64_t hash = hash_of(program);
    const auto [first, last] = known.equal_range(hash);
    const auto same = std::find_if(first, last, [&](const auto& k) { return workload.programs[k.second] == program; });
    if (same != last) {
      workload.program_of.push_back(same->second);
      continue;
    }
    known.emplace(hash, static_cast<std::uint32_t>(workload.programs.size()));
    workload.program_of.push_back(static_cast<std::uint32_t>(workload.programs.size()));
    workload.programs.push_back(std::move(program));
  }
  finish(workload);
  return workload;
}

}  // namespace tutti::sim
