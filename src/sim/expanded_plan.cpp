// expanded_plan.cpp: a plan with its sub-requests written out.
// SPDX-License-Identifier: Apache-2.0
#include "sim/expanded_plan.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "base/hash.hpp"
#include "plan/layout.hpp"
#include "plan/nodes.hpp"
#include "sim/reuse_distance.hpp"

namespace tutti::sim {

namespace {

// Where a piece lies, comparable with those of all sub-requests: input and output are one memory when the call is in place.
struct Address {
  int memory = 0;
  std::int64_t offset = 0;
  friend bool operator==(const Address&, const Address&) = default;
};

// Where the spaces of a plan begin.
struct Spaces {
  Address input, output;
  int scratch = 2;
  static Spaces of(const Placement& place) {
    if (!place.shared) return {.input = {0, 0}, .output = {1, 0}};
    return {.input = {1, place.input_begin}, .output = {1, place.output_begin}};
  }
  [[nodiscard]] Address address_of(const Piece& piece, std::int64_t more = 0) const {
    if (piece.space == Space::scratch) return {scratch, piece.offset + more};
    const Address& base = piece.space == Space::input ? input : output;
    return {base.memory, base.offset + piece.offset + more};
  }
};

// Elements that a rank reads and writes in a call.
std::int64_t memory_of(const Plan& plan) {
  const Placement place = placement_of(plan.spec);
  return plan.scratch_count + (place.shared ? place.shared_count : input_count(plan.spec) + output_count(plan.spec));
}

// The request that the engine makes of a call (Execution::begin_call), with the algorithm that it would choose.
Spec chosen_spec_of(const Plan& plan, const SubCollective& call, const Spaces& spaces, const Table& table,
                    std::int64_t element_bytes) {
  Spec spec = spec_of(plan.spec, call);
  const std::int64_t own = own_block(spec);
  spec.in_place = spaces.address_of(call.from, splits(call.verb) ? own : 0) ==
                  spaces.address_of(call.to, joins(call.verb) ? own : 0);

  const std::int64_t count =
      spec.counts.empty() ? spec.count : std::accumulate(spec.counts.begin(), spec.counts.end(), std::int64_t{0});
  const Choice choice = select({.verb = spec.verb,
                                .bytes = count * element_bytes,
                                .uneven = !spec.counts.empty(),
                                .topology = Topology::of(spec.size, spec.node_of)},
                               table);
  spec.algorithm = choice.algorithm;
  spec.segment = choice.segment(element_bytes);
  return spec;
}

class Writer {
 public:
  Writer(const Plan& plan, std::int64_t element_bytes, const Table& table, ExpandedPlan& expanded)
      : element_bytes_(element_bytes), memory_(memory_of(plan)), table_(table), expanded_(expanded) {}

  // `world_of`: rank in the plan's group → rank in the world; empty: the same. The plan of a sub-request begins at `entry`
  // and ends at a join of its own, `exit`.
  void write(const Plan& plan, const std::vector<int>& world_of, const Spaces& spaces, std::uint32_t entry,
             std::uint32_t* exit) {
    std::vector<std::uint32_t> first(plan.steps.size()), last(plan.steps.size());
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      first[i] = static_cast<std::uint32_t>(expanded_.nodes.size());
      last[i] = plan.steps[i].act == Act::call ? write_call(plan, plan.steps[i], spaces) : first[i];
      if (plan.steps[i].act != Act::call) expanded_.nodes.push_back(node_of(plan.steps[i], world_of, spaces));
      if (exit != nullptr && plan.steps[i].needs == 0) edge(entry, first[i]);
    }
    if (exit != nullptr) *exit = join();
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      const std::uint32_t begin = plan.unlock_begin[i], end = plan.unlock_begin[i + 1];
      for (std::uint32_t k = begin; k < end; ++k) edge(last[i], first[plan.unlocks[k]]);
      if (exit != nullptr && begin == end) edge(last[i], *exit);
    }
    if (exit != nullptr && plan.steps.empty()) edge(entry, *exit);
  }

 private:
  std::uint32_t write_call(const Plan& plan, const Step& step, const Spaces& spaces) {
    const SubCollective& call = plan.calls[static_cast<std::size_t>(step.call)];
    const std::uint32_t entry = join();
    std::uint32_t exit = entry;
    const Spaces inner{
        .input = spaces.address_of(call.from), .output = spaces.address_of(call.to), .scratch = ++scratches_};
    write(make_plan(chosen_spec_of(plan, call, spaces, table_, element_bytes_)), call.members, inner, entry, &exit);
    return exit;
  }
  ExpandedPlan::Node node_of(const Step& step, const std::vector<int>& world_of, const Spaces& spaces) {
    const auto world = [&](int rank) { return world_of.empty() ? rank : world_of[static_cast<std::size_t>(rank)]; };
    const std::int64_t to_bytes = step.to.count * element_bytes_, since = bytes_since(step, spaces);
    switch (step.act) {
      case Act::send:
        return {.work = Work::send,
                .peer = world(step.peer),
                .bytes = step.from.count * element_bytes_,
                .bytes_since = since};
      case Act::recv: return {.work = Work::recv, .peer = world(step.peer), .bytes = to_bytes, .bytes_since = since};
      case Act::reduce:
      case Act::finish: return {.work = Work::local, .reduced_bytes = to_bytes, .bytes_since = since};
      default: return {.work = Work::local, .bytes = to_bytes, .bytes_since = since};
    }
  }
  // Since the pieces of a step were touched last, on average; what this call has not touched yet, the one before has.
  std::int64_t bytes_since(const Step& step, const Spaces& spaces) {
    std::int64_t sum = 0, pieces = 0;
    const auto touch = [&](const Piece& piece) {
      const Address address = spaces.address_of(piece);
      sum += std::min(memory_, reuse_.touch({address.memory, address.offset, piece.count}, memory_));
      ++pieces;
    };
    const bool reads = step.act == Act::send || step.act == Act::copy || step.act == Act::reduce;
    if (reads) touch(step.from);
    if (step.act == Act::reduce) touch(step.with);
    const bool again = reads && (step.to == step.from || (step.act == Act::reduce && step.to == step.with));
    if (step.act != Act::send && !again) touch(step.to);
    return sum / pieces * element_bytes_;
  }
  std::uint32_t join() {
    expanded_.nodes.emplace_back();
    return static_cast<std::uint32_t>(expanded_.nodes.size() - 1);
  }
  void edge(std::uint32_t before, std::uint32_t after) { expanded_.edges.push_back({before, after}); }

  std::int64_t element_bytes_;
  std::int64_t memory_;  // elements
  const Table& table_;
  ExpandedPlan& expanded_;
  ReuseDistance reuse_;
  int scratches_ = 2;
};

// What a node waits for and what waits for it, as sums that do not depend on the order: equal sets have equal sums; that
// different ones do not is left to 128 bits.
struct DependencySums {
  std::uint64_t before = 0, after = 0;
  friend bool operator==(const DependencySums&, const DependencySums&) = default;
};
struct HashOfDependencySums {
  std::size_t operator()(const DependencySums& n) const { return n.before ^ (n.after * 0x9e3779b97f4a7c15u); }
};

}  // namespace

ExpandedPlan write_out(const Plan& plan, std::int64_t element_bytes, const Table& table) {
  ExpandedPlan expanded;
  expanded.nodes.reserve(plan.steps.size());
  expanded.edges.reserve(plan.unlocks.size());
  Writer(plan, element_bytes, table, expanded).write(plan, {}, Spaces::of(placement_of(plan.spec)), 0, nullptr);
  return expanded;
}

void merge_equivalent_nodes(ExpandedPlan& expanded) {
  const auto mark = [](std::uint32_t node, std::uint64_t side) { return scramble(side << 32 | node); };
  std::vector<DependencySums> around(expanded.nodes.size());
  for (const ExpandedPlan::Edge& edge : expanded.edges) {
    around[edge.after].before += mark(edge.before, 1);
    around[edge.before].after += mark(edge.after, 2);
  }
  constexpr std::uint32_t gone = UINT32_MAX;
  std::unordered_map<DependencySums, std::uint32_t, HashOfDependencySums> first_of;
  std::vector<std::uint32_t> becomes(expanded.nodes.size());
  std::uint32_t kept = 0;
  for (std::uint32_t i = 0; i < expanded.nodes.size(); ++i) {
    const ExpandedPlan::Node node = expanded.nodes[i];
    if (node.work == Work::local) {
      const auto [equivalent, alone] = first_of.try_emplace(around[i], kept);
      if (!alone) {
        expanded.nodes[equivalent->second].bytes += node.bytes;
        expanded.nodes[equivalent->second].reduced_bytes += node.reduced_bytes;
        expanded.nodes[equivalent->second].bytes_since =
            std::max(expanded.nodes[equivalent->second].bytes_since, node.bytes_since);
        becomes[i] = gone;
        continue;
      }
    }
    expanded.nodes[kept] = node;
    becomes[i] = kept++;
  }
  expanded.nodes.resize(kept);
  std::erase_if(expanded.edges, [&](ExpandedPlan::Edge& edge) {
    edge = {becomes[edge.before], becomes[edge.after]};
    return edge.before == gone || edge.after == gone;
  });
}

}  // namespace tutti::sim
