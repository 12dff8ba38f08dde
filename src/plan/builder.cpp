// builder.cpp: steps in order become a plan with dependencies.
// SPDX-License-Identifier: Apache-2.0
#include "plan/builder.hpp"

#include <algorithm>
#include <utility>

#include "plan/layout.hpp"

namespace tutti {

PlanBuilder::PlanBuilder(const Spec& spec)
    : sent_(static_cast<std::size_t>(spec.size)), received_(static_cast<std::size_t>(spec.size)) {
  plan_.spec = spec;
  input_count_ = tutti::input_count(spec);
  output_count_ = tutti::output_count(spec);
  const Placement place = placement_of(spec);
  shared_ = place.shared;
  input_begin_ = place.input_begin;
  output_begin_ = place.output_begin;
}

Piece PlanBuilder::scratch(std::int64_t count) {
  const Piece piece{Space::scratch, plan_.scratch_count, count};
  plan_.scratch_count += count;
  return piece;
}

// Where in memory a piece lies: when input and output are one memory, it is addressed as output.
Piece PlanBuilder::in_memory(Piece piece) const {
  if (!shared_ || piece.space == Space::scratch) return piece;
  const std::int64_t begin = piece.space == Space::input ? input_begin_ : output_begin_;
  return {Space::output, begin + piece.offset, piece.count};
}

void PlanBuilder::wait_for(std::uint32_t step) {
  const auto current = static_cast<std::uint32_t>(plan_.steps.size());
  if (step == current || edge_seen_[step] == current + 1) return;
  edge_seen_[step] = current + 1;
  edges_.push_back({.before = step, .step = current});
}

void PlanBuilder::reads(Piece piece) {
  const Piece at = in_memory(piece);
  if (at.count == 0 || at.space == Space::input) return;  // an input of its own is never written
  Hazards& hazards = at.space == Space::output ? output_hazards_ : scratch_hazards_;
  hazards.read(at.offset, at.offset + at.count, static_cast<std::uint32_t>(plan_.steps.size()),
               [this](std::uint32_t step) { wait_for(step); });
}

void PlanBuilder::writes(Piece piece) {
  const Piece at = in_memory(piece);
  if (at.count == 0) return;
  if (at.space == Space::input) throw std::logic_error("a plan's algorithm writes to its input");
  Hazards& hazards = at.space == Space::output ? output_hazards_ : scratch_hazards_;
  hazards.write(at.offset, at.offset + at.count, static_cast<std::uint32_t>(plan_.steps.size()),
                [this](std::uint32_t step) { wait_for(step); });
}

void PlanBuilder::after(std::uint32_t step) {
  if (step != no_step) ordered_after_.push_back(step);
}

std::uint32_t PlanBuilder::append(const Step& step) {
  const auto index = static_cast<std::uint32_t>(plan_.steps.size());
  edge_seen_.push_back(0);
  const std::size_t edges_before = edges_.size();
  switch (step.act) {
    case Act::send: reads(step.from); break;
    case Act::recv:
    case Act::zero:
    case Act::identity: writes(step.to); break;
    case Act::finish:
      reads(step.to);
      writes(step.to);
      break;
    case Act::reduce: reads(step.with); [[fallthrough]];
    case Act::copy:
    case Act::call:
      reads(step.from);
      writes(step.to);
      break;
  }
  for (const std::uint32_t before : ordered_after_) wait_for(before);
  ordered_after_.clear();
  plan_.steps.push_back(step);
  plan_.steps.back().needs = static_cast<std::uint32_t>(edges_.size() - edges_before);
  return index;
}

// Where each rank knows only its own counts, an empty message shows both ranks that they agree.
bool PlanBuilder::travels(Piece piece) const {
  const bool has_private_counts = spec().verb == Verb::all_to_all && !spec().recv_counts.empty();
  return piece.count > 0 || spec().verb == Verb::barrier || has_private_counts;
}

std::uint32_t PlanBuilder::send(int peer, Piece from) {
  if (!travels(from)) return no_step;
  return append({.act = Act::send, .peer = peer, .tag = sent_[static_cast<std::size_t>(peer)]++, .from = from});
}

std::uint32_t PlanBuilder::recv(int peer, Piece to) {
  if (!travels(to)) return no_step;
  return append({.act = Act::recv, .peer = peer, .tag = received_[static_cast<std::size_t>(peer)]++, .to = to});
}

std::uint32_t PlanBuilder::reduce(Piece from, Piece with, Piece to) {
  return to.count == 0 ? no_step : append({.act = Act::reduce, .from = from, .with = with, .to = to});
}

std::uint32_t PlanBuilder::copy(Piece from, Piece to) {
  if (to.count == 0 || in_memory(from) == in_memory(to)) return no_step;
  return append({.act = Act::copy, .from = from, .to = to});
}

std::uint32_t PlanBuilder::finish(Piece piece) {
  return !spec().finish || piece.count == 0 ? no_step : append({.act = Act::finish, .to = piece});
}

std::uint32_t PlanBuilder::zero(Piece piece) {
  return piece.count == 0 ? no_step : append({.act = Act::zero, .to = piece});
}

std::uint32_t PlanBuilder::identity(Piece piece) {
  return piece.count == 0 ? no_step : append({.act = Act::identity, .to = piece});
}

std::uint32_t PlanBuilder::call(SubCollective call) {
  if (call.members.size() == 1) return copy(call.from, call.to);
  const bool empty = std::all_of(call.counts.begin(), call.counts.end(), [](std::int64_t c) { return c == 0; });
  if (empty && call.verb != Verb::barrier) return no_step;
  plan_.calls.push_back(std::move(call));
  const SubCollective& stored = plan_.calls.back();
  return append({.act = Act::call,
                 .call = static_cast<std::int32_t>(plan_.calls.size() - 1),
                 .from = stored.from,
                 .to = stored.to});
}

Plan PlanBuilder::build() && {
  std::vector<std::uint32_t>& begin = plan_.unlock_begin;
  begin.assign(plan_.steps.size() + 1, 0);
  for (const Edge& edge : edges_) ++begin[edge.before + 1];
  for (std::size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
  plan_.unlocks.resize(edges_.size());
  std::vector<std::uint32_t>& next = edge_seen_;  // reused: where the next successor of each step goes
  std::copy(begin.begin(), begin.end() - 1, next.begin());
  for (const Edge& edge : edges_) plan_.unlocks[next[edge.before]++] = edge.step;
  return std::move(plan_);
}

}  // namespace tutti
