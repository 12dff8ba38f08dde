// machine.cpp: runs the plans of all ranks of a group on symbols.
// SPDX-License-Identifier: Apache-2.0
#include "verify/machine.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include <fmt/format.h>

namespace tutti {

std::string Machine::run(std::span<const Plan> plans, Schedule schedule, Sends sends, std::uint64_t seed,
                         SymbolNames* names) {
  plans_ = plans;
  sends_ = sends;
  names_ = names;
  random_ = mix(seed, 17) | 1;
  problem_.clear();
  ready_.clear();
  ready_front_ = left_ = 0;
  prepare_memory(plans, names);
  if (problem_ = match_messages(plans); !problem_.empty()) return problem_;
  if (problem_ = match_calls(plans); !problem_.empty()) return problem_;

  needs_.resize(plans.size());
  for (std::uint32_t rank = 0; rank < plans.size(); ++rank) {
    const auto& steps = plans[rank].steps;
    left_ += steps.size();
    needs_[rank].resize(steps.size());
    for (std::uint32_t i = 0; i < steps.size(); ++i) {
      needs_[rank][i] = steps[i].needs;
      if (steps[i].needs == 0) ready_.push_back({rank, i});
    }
  }
  while (ready_front_ < ready_.size() && problem_.empty()) start(next_ready(schedule));
  if (problem_.empty() && left_ > 0) problem_ = describe_stall();
  return problem_;
}

void Machine::prepare_memory(std::span<const Plan> plans, SymbolNames* names) {
  memories_.resize(plans.size());
  for (std::size_t rank = 0; rank < plans.size(); ++rank) {
    const Spec& spec = plans[rank].spec;
    const Placement place = placement_of(spec);
    const std::int64_t inputs = input_count(spec), outputs = output_count(spec);
    const std::int64_t callers = place.shared ? place.shared_count : inputs + outputs;
    Memory& memory = memories_[rank];
    memory.elements.assign(static_cast<std::size_t>(callers + plans[rank].scratch_count), Symbol{});
    memory.input = memory.elements.data() + place.input_begin;
    memory.output = memory.elements.data() + (place.shared ? place.output_begin : inputs);
    memory.scratch = memory.elements.data() + callers;
    for (std::int64_t i = 0; i < inputs; ++i) {
      memory.input[i] = input_symbol(static_cast<int>(rank), i);
      if (names != nullptr) (*names)[memory.input[i].expression] = fmt::format("r{}[{}]", rank, i);
    }
  }
  if (names != nullptr) {
    (*names)[zero_symbol().expression] = "zero";
    (*names)[identity_symbol().expression] = "identity";
  }
}

std::string Machine::match_messages(std::span<const Plan> plans) {
  const std::size_t size = plans.size();
  pair_begin_.assign(size * size + 1, 0);
  link_of_.resize(size);
  for (std::size_t rank = 0; rank < size; ++rank) {
    for (const Step& step : plans[rank].steps) {
      if (step.act != Act::send && step.act != Act::recv) continue;
      if (step.peer < 0 || std::size_t(step.peer) >= size || std::size_t(step.peer) == rank) {
        return fmt::format("rank {} talks to rank {}", rank, step.peer);
      }
      if (step.act == Act::send) ++pair_begin_[rank * size + std::size_t(step.peer) + 1];
    }
  }
  std::partial_sum(pair_begin_.begin(), pair_begin_.end(), pair_begin_.begin());
  links_.assign(pair_begin_.back(), Link{});
  if (sends_ == Sends::eager) payloads_.assign(links_.size(), {});
  pair_sent_.assign(size * size, 0);
  pair_received_.assign(size * size, 0);
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    const auto& steps = plans[rank].steps;
    link_of_[rank].assign(steps.size(), 0);
    for (std::uint32_t i = 0; i < steps.size(); ++i) {
      const Step& step = steps[i];
      if (step.act != Act::send && step.act != Act::recv) continue;
      const bool sending = step.act == Act::send;
      const std::size_t peer = std::size_t(step.peer), pair = sending ? rank * size + peer : peer * size + rank;
      const std::uint32_t k = (sending ? pair_sent_ : pair_received_)[pair]++;
      if (step.tag != k) return fmt::format("rank {} step {}: tag {} where {} was due", rank, i, step.tag, k);
      const std::uint32_t link = pair_begin_[pair] + k;
      if (link >= pair_begin_[pair + 1]) {
        return fmt::format("rank {} step {}: receives message {} from rank {}, which is never sent", rank, i, k, peer);
      }
      (sending ? links_[link].send : links_[link].recv) = {rank, i};
      link_of_[rank][i] = link;
    }
  }
  for (std::size_t pair = 0; pair < size * size; ++pair) {
    if (pair_sent_[pair] != pair_received_[pair]) {
      return fmt::format("rank {} sends {} messages to rank {}, which receives {}", pair / size, pair_sent_[pair],
                         pair % size, pair_received_[pair]);
    }
  }
  for (const Link& link : links_) {
    if (step_at(link.send).from.count != step_at(link.recv).to.count) {
      return fmt::format("rank {} step {} sends {} elements, rank {} step {} receives {}", link.send.rank,
                         link.send.step, step_at(link.send).from.count, link.recv.rank, link.recv.step,
                         step_at(link.recv).to.count);
    }
  }
  return "";
}

Machine::Place Machine::next_ready(Schedule schedule) {
  if (schedule == Schedule::first_ready) return ready_[ready_front_++];
  if (schedule == Schedule::random) {
    random_ = mix(random_, 19);
    const std::size_t pick = ready_front_ + random_ % (ready_.size() - ready_front_);
    std::swap(ready_[pick], ready_.back());
  }
  const Place place = ready_.back();
  ready_.pop_back();
  return place;
}

Symbol* Machine::at(std::uint32_t rank, Piece piece) {
  const Memory& memory = memories_[rank];
  Symbol* space = piece.space == Space::input    ? memory.input
                  : piece.space == Space::output ? memory.output
                                                 : memory.scratch;
  return space + piece.offset;
}

void Machine::check_defined(Place place, Piece piece) {
  const Symbol* elements = at(place.rank, piece);
  for (std::int64_t i = 0; i < piece.count; ++i) {
    if (elements[i].state != Symbol::State::undefined) continue;
    problem_ =
        fmt::format("rank {} step {}: reads element {} of its operand, which nobody wrote", place.rank, place.step, i);
    return;
  }
}

Symbol Machine::combine(const Symbol& a, const Symbol& b) {
  const Symbol result = reduced(a, b);
  if (names_ != nullptr)
    (*names_)[result.expression] = fmt::format("({} ⊕ {})", (*names_)[a.expression], (*names_)[b.expression]);
  return result;
}

Symbol Machine::last_touch(const Symbol& a) {
  const Symbol result = finished(a);
  if (names_ != nullptr) (*names_)[result.expression] = fmt::format("finish{}", (*names_)[a.expression]);
  return result;
}

void Machine::start(Place place) {
  const Step& step = step_at(place);
  if (step.act == Act::send || step.act == Act::recv) {
    const std::uint32_t index = link_of_[place.rank][place.step];
    Link& link = links_[index];
    (step.act == Act::send ? link.send_ready : link.recv_ready) = true;
    if (sends_ == Sends::eager && step.act == Act::send) {
      check_defined(place, step.from);
      const Symbol* elements = at(place.rank, step.from);
      payloads_[index].assign(elements, elements + step.from.count);
      complete(place);
    }
    if (link.send_ready && link.recv_ready) transfer(index);
  } else if (step.act == Act::call) {
    SubCollectiveMatch& match = matches_[link_of_[place.rank][place.step]];
    if (++match.ready == match.members.size()) run_match(match);
  } else {
    run_local(place, step);
    complete(place);
  }
}

void Machine::transfer(std::uint32_t index) {
  const Link& link = links_[index];
  const Step& recv = step_at(link.recv);
  Symbol* to = at(link.recv.rank, recv.to);
  if (sends_ == Sends::eager) {
    std::copy(payloads_[index].begin(), payloads_[index].end(), to);
  } else {
    check_defined(link.send, step_at(link.send).from);
    std::copy_n(at(link.send.rank, step_at(link.send).from), recv.to.count, to);
    complete(link.send);
  }
  complete(link.recv);
}

void Machine::run_local(Place place, const Step& step) {
  Symbol* to = at(place.rank, step.to);
  const Symbol *from = at(place.rank, step.from), *with = at(place.rank, step.with);
  const std::int64_t count = step.to.count;
  switch (step.act) {
    case Act::copy:
      check_defined(place, step.from);
      std::copy_n(from, count, to);
      break;
    case Act::reduce:
      check_defined(place, step.from);
      check_defined(place, step.with);
      for (std::int64_t i = 0; i < count; ++i) to[i] = combine(from[i], with[i]);
      break;
    case Act::finish:
      for (std::int64_t i = 0; i < count; ++i) to[i] = last_touch(to[i]);
      break;
    case Act::zero: std::fill_n(to, count, zero_symbol()); break;
    case Act::identity: std::fill_n(to, count, identity_symbol()); break;
    default: break;
  }
}

void Machine::complete(Place place) {
  --left_;
  const Plan& plan = plans_[place.rank];
  for (std::uint32_t i = plan.unlock_begin[place.step]; i < plan.unlock_begin[place.step + 1]; ++i) {
    const std::uint32_t next = plan.unlocks[i];
    if (--needs_[place.rank][next] == 0) ready_.push_back({place.rank, next});
  }
}

std::string Machine::describe_stall() const {
  for (std::uint32_t rank = 0; rank < plans_.size(); ++rank) {
    for (std::uint32_t i = 0; i < plans_[rank].steps.size(); ++i) {
      const Step& step = plans_[rank].steps[i];
      if (needs_[rank][i] != 0 || (step.act != Act::send && step.act != Act::recv)) continue;
      const Link& link = links_[link_of_[rank][i]];
      if (link.send_ready && link.recv_ready) continue;
      if (sends_ == Sends::eager && step.act == Act::send) continue;
      const Place other = step.act == Act::send ? link.recv : link.send;
      return fmt::format("deadlock: {} steps never end; rank {} step {} waits for rank {} step {}, which needs {} more",
                         left_, rank, i, other.rank, other.step, needs_[other.rank][other.step]);
    }
  }
  return fmt::format("deadlock: {} steps never end", left_);
}

// ---- requests on subgroups: run at once, when all members have come to them

namespace {

Spec spec_of(const SubCollective& call, int member) {
  Spec spec{.verb = call.verb, .rank = member, .size = static_cast<int>(call.members.size()), .root = call.root};
  if (call.counts.size() == call.members.size() && call.counts.size() > 1) spec.counts = call.counts;
  if (call.counts.size() == 1) spec.count = call.counts[0];
  return spec;
}

}  // namespace

// The k-th call of each member on the same members belongs together.
std::string Machine::match_calls(std::span<const Plan> plans) {
  matches_.clear();
  std::map<std::pair<std::vector<int>, int>, std::uint32_t> match_of;
  for (std::uint32_t rank = 0; rank < plans.size(); ++rank) {
    std::map<std::vector<int>, int> so_far;
    for (std::uint32_t i = 0; i < plans[rank].steps.size(); ++i) {
      if (plans[rank].steps[i].act != Act::call) continue;
      const SubCollective& call = plans[rank].calls[static_cast<std::size_t>(plans[rank].steps[i].call)];
      const int k = so_far[call.members]++;
      const auto [found, added] = match_of.try_emplace({call.members, k}, matches_.size());
      if (added) matches_.emplace_back();
      matches_[found->second].members.push_back({rank, i});
      link_of_[rank][i] = found->second;
    }
  }
  for (const SubCollectiveMatch& match : matches_) {
    if (std::string problem = check_match(plans, match); !problem.empty()) return problem;
  }
  return "";
}

std::string Machine::check_match(std::span<const Plan> plans, const SubCollectiveMatch& match) const {
  const auto call_at = [&](Place p) -> const SubCollective& {
    return plans[p.rank].calls[std::size_t(step_at(p).call)];
  };
  const SubCollective& first = call_at(match.members.front());
  for (std::size_t i = 0; i < match.members.size(); ++i) {
    const Place place = match.members[i];
    const SubCollective& call = call_at(place);
    const auto found = std::find(call.members.begin(), call.members.end(), static_cast<int>(place.rank));
    if (found == call.members.end()) return fmt::format("rank {} calls on a subgroup without it", place.rank);
    if (call.verb != first.verb || call.root != first.root || call.counts != first.counts ||
        call.finish != first.finish) {
      return fmt::format("ranks {} and {} disagree on a {} of their subgroup", match.members[0].rank, place.rank,
                         name_of(first.verb));
    }
    const Spec spec = spec_of(call, static_cast<int>(found - call.members.begin()));
    if (call.from.count != input_count(spec) || call.to.count != output_count(spec)) {
      return fmt::format("rank {} step {}: a {} that takes {} and gives {} elements has pieces of {} and {}",
                         place.rank, place.step, name_of(call.verb), input_count(spec), output_count(spec),
                         call.from.count, call.to.count);
    }
  }
  if (match.members.size() != first.members.size()) {
    return fmt::format("a {} of {} ranks is called by {} of them", name_of(first.verb), first.members.size(),
                       match.members.size());
  }
  return "";
}

void Machine::run_match(const SubCollectiveMatch& match) {
  const Place any = match.members.front();
  const SubCollective& shape = plans_[any.rank].calls[std::size_t(step_at(any).call)];
  // Places in the order of the subgroup's ranks, which is the order of reduction.
  std::vector<Place> places(match.members.size());
  for (const Place place : match.members) {
    const auto found = std::find(shape.members.begin(), shape.members.end(), static_cast<int>(place.rank));
    places[static_cast<std::size_t>(found - shape.members.begin())] = place;
  }
  operands_.clear();  // everything that goes in: reduced, or one after the other
  for (std::size_t m = 0; m < places.size(); ++m) {
    const Piece from = step_at(places[m]).from;
    check_defined(places[m], from);
    const Symbol* elements = at(places[m].rank, from);
    if (!reduces(shape.verb) || m == 0) {
      operands_.insert(operands_.end(), elements, elements + from.count);
    } else {
      for (std::int64_t i = 0; i < from.count; ++i)
        operands_[std::size_t(i)] = combine(operands_[std::size_t(i)], elements[i]);
    }
  }
  if (shape.finish)
    std::transform(operands_.begin(), operands_.end(), operands_.begin(), [&](auto& s) { return last_touch(s); });
  const bool split = splits(shape.verb);
  const Blocks blocks = blocks_of(spec_of(shape, 0));
  for (std::size_t m = 0; m < places.size(); ++m) {
    const Piece to = step_at(places[m]).to;
    std::copy_n(operands_.begin() + (split ? blocks.offset(static_cast<int>(m)) : 0), to.count, at(places[m].rank, to));
  }
  for (const Place place : places) complete(place);
}

}  // namespace tutti
