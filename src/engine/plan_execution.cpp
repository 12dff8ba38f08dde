// plan_execution.cpp: one plan being run over a transport.
// SPDX-License-Identifier: Apache-2.0
#include "engine/plan_execution.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "base/hash.hpp"
#include "kernel/kernel.hpp"
#include "plan/catalog.hpp"
#include "plan/nodes.hpp"

namespace tutti {

namespace {

/// What tells the messages of a sub-request from those of the others. The k-th call of each member on the same members belongs
/// together; its number among a rank's own calls says nothing, for ranks may be in different ones besides.
std::uint32_t phase_of_call(const Plan& plan, std::size_t index, std::uint32_t outer_phase) {
  const std::vector<int>& members = plan.calls[index].members;
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < index; ++i) before += plan.calls[i].members == members ? 1 : 0;
  Hash hash;
  hash.add(outer_phase).add(before);
  for (const int member : members) hash.add(static_cast<std::uint64_t>(member));
  return static_cast<std::uint32_t>(hash.value()) | 0x80000000u;  // apart from the phases of whole requests
}

record::StepKind kind_of(Act act) {
  using record::StepKind;
  switch (act) {
    case Act::send: return StepKind::send;
    case Act::recv: return StepKind::recv;
    case Act::reduce: return StepKind::reduce;
    case Act::copy: return StepKind::copy;
    case Act::finish: return StepKind::finish;
    case Act::zero:
    case Act::identity: return StepKind::fill;
    case Act::call: return StepKind::call;
  }
  return StepKind::copy;
}

}  // namespace

/// A sub-collective: a plan of its own, or prepared by the executor that serves its members.
struct PlanExecution::SubExecution {
  PlanExecution plan_execution;
  ExecutionSpec what;
  std::unique_ptr<PreparedCall> prepared;  // null: the plan
  std::vector<int> world_of;

  bool poll() { return prepared ? prepared->poll() : plan_execution.poll(); }
  void cancel() { prepared ? prepared->cancel() : plan_execution.cancel(); }
  void add_waiting_for(std::vector<int>& ranks) const {
    if (prepared) {
      ranks = prepared->progress().waiting_for;
    } else {
      plan_execution.add_waiting_for(ranks);
    }
  }
};

PlanExecution::PlanExecution() = default;
PlanExecution::~PlanExecution() { cancel(); }

void PlanExecution::start(const Start& start) {
  start_ = start;
  const Plan& plan = *start_.plan;
  const std::size_t count = plan.steps.size();
  done_ = 0;
  ready_.clear();
  ready_head_ = 0;
  active_.clear();
  held_.clear();
  executor_calls_ = 0;
  needs_.resize(count);
  if (transfers_.size() < count) transfers_ = std::vector<Transfer>(count);
  if (calls_.size() < plan.calls.size()) calls_.resize(plan.calls.size());
  scratch_.reserve(static_cast<std::size_t>(plan.scratch_count) * size_of(start_.dtype));
  for (std::uint32_t i = 0; i < count; ++i) {
    needs_[i] = plan.steps[i].needs;
    if (needs_[i] == 0) ready_.push_back(i);
  }
  run_ready();
}

bool PlanExecution::poll() {
  for (std::size_t i = 0; i < active_.size();) {
    const std::uint32_t index = active_[i];
    if (has_ended(index)) {
      active_[i] = active_.back();
      active_.pop_back();
      complete(index);
    } else {
      ++i;
    }
  }
  run_ready();
  return start_.plan == nullptr || done_ == start_.plan->steps.size();
}

void PlanExecution::cancel() {
  if (start_.plan == nullptr) return;
  for (const std::uint32_t index : active_) {
    const Step& step = start_.plan->steps[index];
    if (step.act == Act::call) {
      calls_[static_cast<std::size_t>(step.call)]->cancel();
    } else if (transfers_[index].state == Transfer::State::pending) {
      start_.transport->cancel(transfers_[index]);
    }
  }
  active_.clear();
  held_.clear();
  ready_.clear();
  ready_head_ = 0;
  start_.plan = nullptr;
}

std::string_view PlanExecution::how() const { return start_.plan ? name_of(start_.plan->spec.algorithm) : "nothing"; }

void PlanExecution::add_waiting_for(std::vector<int>& ranks) const {
  if (start_.plan == nullptr) return;
  const auto add = [&](int rank) {
    if (std::find(ranks.begin(), ranks.end(), rank) == ranks.end()) ranks.push_back(rank);
  };
  for (const std::uint32_t index : active_) {
    const Step& step = start_.plan->steps[index];
    if (step.act != Act::call) {
      add(step.peer);
      continue;
    }
    std::vector<int> inner;
    calls_[static_cast<std::size_t>(step.call)]->add_waiting_for(inner);
    for (const int rank : inner)
      add(start_.plan->calls[static_cast<std::size_t>(step.call)].members[std::size_t(rank)]);
  }
}

std::int64_t PlanExecution::bytes_of(const Piece& piece) const {
  return piece.count * static_cast<std::int64_t>(size_of(start_.dtype));
}

const std::byte* PlanExecution::at(const Piece& piece) const {
  const std::byte* base = piece.space == Space::input    ? start_.input
                          : piece.space == Space::output ? start_.output
                                                         : scratch_.data();
  return base == nullptr ? nullptr : base + piece.offset * static_cast<std::int64_t>(size_of(start_.dtype));
}

void PlanExecution::run_ready() {
  while (ready_head_ < ready_.size()) {
    const std::uint32_t index = ready_[ready_head_++];
    const Step& step = start_.plan->steps[index];
    if (step.act == Act::call && !is_its_turn(static_cast<std::uint32_t>(step.call))) {
      held_.push_back(index);
    } else if (begin(index)) {
      complete(index);
    } else {
      active_.push_back(index);
    }
    for (std::size_t i = 0; i < held_.size(); ++i) {
      if (!is_its_turn(static_cast<std::uint32_t>(start_.plan->steps[held_[i]].call))) continue;
      ready_.push_back(held_[i]);
      held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(i));
      break;
    }
  }
  ready_.clear();
  ready_head_ = 0;
}

bool PlanExecution::begin(std::uint32_t index) {
  if (start_.trace != nullptr) [[unlikely]]
    note_begin(index);
  const Step& step = start_.plan->steps[index];
  switch (step.act) {
    case Act::send:
    case Act::recv: return begin_transfer(index);
    case Act::call: return begin_call(index);
    default: run_local(step); return true;
  }
}

bool PlanExecution::begin_transfer(std::uint32_t index) {
  const Step& step = start_.plan->steps[index];
  const bool is_send = step.act == Act::send;
  Transfer& transfer = transfers_[index];
  transfer.envelope = start_.envelope;
  transfer.envelope.tag = step.tag;
  transfer.envelope.bytes = bytes_of(is_send ? step.from : step.to);
  transfer.peer = start_.world_of[static_cast<std::size_t>(step.peer)];
  transfer.from = is_send ? at(step.from) : nullptr;
  transfer.to = is_send ? nullptr : writable(step.to);
  transfer.state = Transfer::State::idle;
  if (is_send) {
    start_.transport->send(transfer);
  } else {
    start_.transport->recv(transfer);
  }
  return transfer.state == Transfer::State::done;
}

bool PlanExecution::is_served_by_executor(const SubCollective& call) const {
  if (start_.local_peers == nullptr) return false;
  const auto served = start_.local_peers->members();
  return std::ranges::equal(call.members, served, {},
                            [&](int member) { return start_.world_of[static_cast<std::size_t>(member)]; });
}

// An executor runs its executions in the order in which they come, and all members must bring them in the same one: that of
// the plan, not that in which steps happen to become ready here.
bool PlanExecution::is_its_turn(std::uint32_t call_index) const {
  const auto& calls = start_.plan->calls;
  if (!is_served_by_executor(calls[call_index])) return true;
  const auto before = std::count_if(calls.begin(), calls.begin() + call_index,
                                    [&](const SubCollective& c) { return is_served_by_executor(c); });
  return static_cast<std::size_t>(before) == executor_calls_;
}

/// What goes wrong in a sub-collective counts its members; this puts the ranks of the plan in their place.
template <class Function>
bool PlanExecution::in_sub_collective(const SubCollective& call, Function function) {
  const auto member = [&](int rank) { return call.members[static_cast<std::size_t>(rank)]; };
  try {
    return function();
  } catch (const TransferFailed& failure) {
    throw TransferFailed(failure.what(), member(failure.peer()), failure.reason());
  } catch (const SignatureDiffers& difference) {
    throw SignatureDiffers(difference.what(), member(difference.peer()), difference.theirs());
  }
}

bool PlanExecution::begin_call(std::uint32_t index) {
  const Step& step = start_.plan->steps[index];
  const SubCollective& call = start_.plan->calls[static_cast<std::size_t>(step.call)];
  auto& sub = calls_[static_cast<std::size_t>(step.call)];
  if (!sub) sub = std::make_unique<SubExecution>();
  const std::byte* input = at(call.from);
  std::byte* output = writable(call.to);
  Spec spec = spec_of(start_.plan->spec, call);
  const std::int64_t own_bytes = own_block(spec) * static_cast<std::int64_t>(size_of(start_.dtype));
  spec.in_place = joins(call.verb)    ? output != nullptr && input == output + own_bytes
                  : splits(call.verb) ? input != nullptr && output == input + own_bytes
                                      : input == output;

  if (is_served_by_executor(call)) {
    const auto phase = start_.envelope.phase + 1 + static_cast<std::uint32_t>(executor_calls_++);
    if (!sub->prepared || sub->what.spec != spec) {
      sub->what = {.spec = std::move(spec),
                   .dtype = start_.dtype,
                   .op = start_.op,
                   .divisor = start_.divisor,
                   .signature = start_.envelope.signature,
                   .phase = phase};
      sub->prepared = start_.local_peers->prepare(sub->what);
    }
    return in_sub_collective(call, [&] {
      try {
        if (!sub->prepared->start({.input = input, .output = output}, start_.envelope.signature)) return false;
      } catch (...) {
        sub->prepared->cancel();  // it is not among the active steps yet
        throw;
      }
      std::atomic_thread_fence(std::memory_order_seq_cst);
      sub->prepared->wake_peers();
      return true;
    });
  }
  sub->world_of.clear();
  for (const int member : call.members) sub->world_of.push_back(start_.world_of[static_cast<std::size_t>(member)]);
  Start inner = start_;
  inner.local_peers = nullptr;
  inner.plan = &start_.plans->plan_for(spec, start_.dtype);
  inner.input = input;
  inner.output = output;
  inner.world_of = sub->world_of;
  inner.envelope.phase = phase_of_call(*start_.plan, static_cast<std::size_t>(step.call), start_.envelope.phase);
  sub->plan_execution.start(inner);
  return false;
}

void PlanExecution::run_local(const Step& step) {
  const Piece& to = step.to;
  const std::size_t bytes = static_cast<std::size_t>(to.count) * size_of(start_.dtype);
  switch (step.act) {
    case Act::reduce:
      kernel::reduce(start_.op, start_.dtype, writable(to), at(step.from), at(step.with), to.count);
      break;
    case Act::copy: std::memmove(writable(to), at(step.from), bytes); break;
    case Act::finish: kernel::divide(start_.dtype, writable(to), at(to), start_.divisor, to.count); break;
    case Act::zero: std::memset(writable(to), 0, bytes); break;
    case Act::identity: kernel::fill_identity(start_.op, start_.dtype, writable(to), to.count); break;
    case Act::send:
    case Act::recv:
    case Act::call: break;  // begin() does not send these here
  }
}

bool PlanExecution::has_ended(std::uint32_t index) {
  const Step& step = start_.plan->steps[index];
  if (step.act == Act::call) {
    const SubCollective& call = start_.plan->calls[static_cast<std::size_t>(step.call)];
    return in_sub_collective(call, [&] { return calls_[static_cast<std::size_t>(step.call)]->poll(); });
  }
  Transfer& transfer = transfers_[index];
  if (transfer.state == Transfer::State::failed) {
    // A receive that was matched holds what arrived.
    const bool fits = step.act == Act::send || transfer.envelope.bytes == bytes_of(step.to);
    throw TransferFailed(transfer.error, step.peer, fits ? TransferFailed::Reason::link : TransferFailed::Reason::size);
  }
  return transfer.state == Transfer::State::done;
}

void PlanExecution::note_begin(std::uint32_t index) {
  begun_.resize(start_.plan->steps.size());
  begun_[index] = record::ticks();
}

void PlanExecution::note_end(std::uint32_t index) const {
  const Step& step = start_.plan->steps[index];
  const bool is_message = step.act == Act::send || step.act == Act::recv;
  const Piece& piece = step.act == Act::send ? step.from : step.to;
  start_.trace->note({.group = start_.envelope.group,
                      .sequence = start_.envelope.signature.sequence,
                      .kind = kind_of(step.act),
                      .bytes = static_cast<std::uint64_t>(bytes_of(piece)),
                      .peer = is_message ? start_.world_of[static_cast<std::size_t>(step.peer)] : -1,
                      .phase = start_.envelope.phase,
                      .tag = step.tag},
                     begun_[index]);
}

void PlanExecution::complete(std::uint32_t index) {
  const Plan& plan = *start_.plan;
  if (start_.trace != nullptr) [[unlikely]]
    note_end(index);
  ++done_;
  for (std::uint32_t i = plan.unlock_begin[index]; i < plan.unlock_begin[index + 1]; ++i) {
    const std::uint32_t next = plan.unlocks[i];
    if (--needs_[next] == 0) ready_.push_back(next);
  }
}

}  // namespace tutti
