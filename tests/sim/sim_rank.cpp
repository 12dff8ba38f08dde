// sim_rank.cpp: one rank of a scenario.
// SPDX-License-Identifier: Apache-2.0
#include "sim_rank.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/hash.hpp"

namespace tutti::sim {
namespace {

constexpr std::uint64_t world_id = 1;
constexpr int late_write_at = 5;  // the call whose memory is written when it should not be

std::vector<int> nodes_of(const messages::SimulationOptions& cluster, const std::vector<int>& members) {
  std::vector<int> nodes;
  for (const int member : members) nodes.push_back(member / cluster.ranks_per_node);
  const bool one = std::ranges::all_of(nodes, [&](int node) { return node == nodes.front(); });
  return one ? std::vector<int>() : nodes;
}

/// An error's text without who reports it, and without the call, if the cause does not begin with it by itself.
std::string cause_in(const std::string& text, const std::string& who, const std::string& call) {
  if (!text.starts_with(who)) return text;
  const std::string rest = text.substr(who.size());
  if (!rest.starts_with(call)) return rest;
  const std::string after = rest.substr(call.size());
  if (!after.starts_with(": ") && !after.starts_with(" of shape (")) return rest;
  return after.substr(after.find(": ") + 2);
}

}  // namespace

SimRank::SimRank(const Surroundings& around, int rank) : around_(around), rank_(rank) {
  join();
  for (std::size_t g = 0; g < around_.scenario.groups.size(); ++g) {
    const GroupScript& script = around_.scenario.groups[g];
    if (script.rank_of(rank_) >= 0) courses_.push_back({.group = g, .script = &script});
  }
  for (Course& course : courses_) begin(course);
}

void SimRank::join() {
  const messages::SimulationOptions& cluster = around_.scenario.cluster;
  const int strikes = static_cast<int>(around_.scenario.seed % static_cast<std::uint64_t>(cluster.size));
  Runtime::Parts parts;
  parts.clock = &around_.cluster.clock();
  parts.transport = std::make_unique<LentTransport>(
      around_.cluster.endpoint(rank_),
      LentTransport::Fault{.breakage = rank_ == strikes ? around_.breakage : Breakage::none, .after_messages = 3});
  parts.seed = Hash(cluster.seed).add(static_cast<std::uint64_t>(rank_)).value();
  parts.threaded = false;
  for (int each = 0; each < cluster.size; ++each) {
    parts.node_of.push_back(each / cluster.ranks_per_node);
    parts.hosts.push_back(fmt::format("node{}", parts.node_of.back()));
  }
  runtime_ = std::make_shared<Runtime>(std::move(parts));
  runtime_->start();
}

// The world is there from the start; other groups are made by their members.
void SimRank::begin(Course& course) {
  if (course.group == 0) return enter_group(course, world_id);
  const auto guard = runtime_->lock();
  const TimePoint deadline = runtime_->clock().now() + course.script->timeout;
  course.creation = runtime_->control().create(
      {.members = course.script->members, .key = course.group, .blob = {}, .deadline = deadline});
  around_.history.creations.push_back(
      {.rank = rank_, .group = course.group, .deadline = now() + course.script->timeout});
  course.creation_record = &around_.history.creations.back();
}

void SimRank::enter_group(Course& course, std::uint64_t id) {
  const std::vector<int>& members = course.script->members;
  GroupFacts facts{.rank = course.script->rank_of(rank_),
                   .size = static_cast<int>(members.size()),
                   .id = id,
                   .world_of = members,
                   .node_of = nodes_of(around_.scenario.cluster, members)};
  course.core = GroupCore::make(runtime_, std::move(facts), runtime_->parts().table);
  course.next_at = now() + course.script->thinking_time(0, rank_);
}

bool SimRank::step() {
  bool moved = false;
  {
    const auto guard = runtime_->lock();
    moved = runtime_->poll();
  }
  bool done = true;
  for (Course& course : courses_) {
    moved |= take_group(course);
    do {
      moved |= collect(course);
    } while (make_calls(course) && (moved = true));
    done &= is_done(course);
  }
  if (done && !finished_) {
    finished_ = true;
    if (around_.scenario.leave_when_done) leave();
  }
  const auto guard = runtime_->lock();
  TimePoint look = left_ ? TimePoint::max() : runtime_->next_look();
  for (const Course& course : courses_) {
    const bool thinks = course.core && !course.stopped && course.next_at > now();
    if (thinks) look = std::min(look, runtime_->clock().now() + (course.next_at - now()));
  }
  around_.cluster.endpoint(rank_).wait(look, Transport::Events::all);
  return moved;
}

bool SimRank::is_done(const Course& course) const {
  const bool over = course.stopped || (course.core && course.next == course.script->calls.size());
  return over && course.under_way.empty();
}

bool SimRank::take_group(Course& course) {
  using State = control::Creation::State;
  if (!course.creation || course.creation->state == State::pending) return false;
  const auto creation = std::exchange(course.creation, nullptr);
  CreationRecord& record = *course.creation_record;
  record.ended = now();
  record.ended_at_all = true;
  record.failed = creation->state == State::failed;
  record.cause = creation->cause;
  if (record.failed) {
    course.stopped = true;
  } else {
    enter_group(course, creation->group);
  }
  return true;
}

bool SimRank::collect(Course& course) {
  const auto ended = [](const UnderWay& each) { return each.operation->ended(); };
  for (UnderWay& each : course.under_way) {
    if (ended(each)) each.operation->group.reset();  // as the waiting thread does
  }
  return std::erase_if(course.under_way, ended) > 0;
}

bool SimRank::make_calls(Course& course) {
  bool moved = false;
  while (course.core && !course.stopped && course.next < course.script->calls.size()) {
    const ScenarioCall& call = course.script->calls[course.next];
    if (call.concerns(course.core->facts().rank)) {
      if (std::ssize(course.under_way) >= course.script->window || now() < course.next_at) return moved;
      if (deviate(course)) return true;
      make_call(course);
      moved = true;
    }
    ++course.next;
    course.next_at = now() + course.script->thinking_time(course.next, rank_);
  }
  return moved;
}

const Deviation* SimRank::deviation(const Course& course, Deviation::Kind kind) const {
  for (const Deviation& each : around_.scenario.deviations) {
    const bool here = each.rank == rank_ && each.group == course.group && each.call == course.next;
    if (here && each.kind == kind) return &each;
  }
  return nullptr;
}

// True if the rank makes no more calls on this group.
bool SimRank::deviate(Course& course) {
  if (deviation(course, Deviation::Kind::leave) != nullptr) {
    leave();
    return true;
  }
  if (deviation(course, Deviation::Kind::absence) != nullptr) {
    course.stopped = true;
    return true;
  }
  if (deviation(course, Deviation::Kind::abort) != nullptr && !course.core->parts().failure.is_broken()) {
    course.core->abort("the script says so");
  }
  return false;
}

void SimRank::leave() {
  left_ = true;
  around_.history.left.insert(rank_);
  runtime_->leave();
  for (Course& course : courses_) {
    course.stopped = true;
    if (!course.core || course.next < course.script->calls.size()) around_.history.left_early.insert(rank_);
  }
}

void SimRank::make_call(Course& course) {
  const GroupScript& script = *course.script;
  around_.history.calls.push_back({.rank = rank_, .group = course.group, .call = course.next});
  Record& record = around_.history.calls.back();
  record.started = now();
  record.deadline = record.started + script.timeout;
  const Deviation* other = deviation(course, Deviation::Kind::mismatch);
  const ScenarioCall& call = other != nullptr ? *other->instead : script.calls[course.next];
  record.side = std::make_unique<Side>(call, course.core->facts().rank, course.core->facts().size);
  try {
    const auto operation = start(course, record);
    if (!operation) return note_end(course, record, nullptr);          // a send that was over at once
    record.cause = course.core->parts().state.names.call(*operation);  // until it ends: how its errors begin
    const auto note = [this, &course, &record](const std::exception_ptr& error) { note_end(course, record, error); };
    if (!operation->then(note)) note(operation->error());
    course.under_way.push_back({operation, &record});
  } catch (const std::exception&) {
    note_end(course, record, std::current_exception());
    course.stopped = course.core->parts().failure.is_broken();
  }
}

std::shared_ptr<Operation> SimRank::start(Course& course, Record& record) {
  const GroupScript& script = *course.script;
  if (script.calls[course.next].message)
    return course.core->start_message(nullptr, record.side->message(script.timeout));
  Request request = record.side->request();
  if (deviation(course, Deviation::Kind::refusal) != nullptr) spoil(request, course.core->facts().size);
  GroupCore::Entry entry;
  return course.core->start(entry, terms_of(request), script.timeout);
}

// Also looks at the arrays, and then does with them what a caller may do: they are its own again.
void SimRank::note_end(Course& course, Record& record, const std::exception_ptr& error) {
  if (++record.endings > 1) return;
  record.ended = now();
  record.group_broken = course.core->parts().failure.is_broken();
  const std::string call = std::exchange(record.cause, {});
  const auto note = [&](Outcome outcome, const std::exception& what) {
    record.outcome = outcome;
    record.text = record.cause = what.what();
    const GroupFacts& facts = course.core->facts();
    record.cause = cause_in(record.text, fmt::format("rank {} of {}: ", facts.rank, facts.size),
                            call.empty() ? "the group is broken" : call);
  };
  try {
    if (error) std::rethrow_exception(error);
    record.outcome = Outcome::well;
  } catch (const InvalidArgument& e) {
    note(Outcome::refused, e);
  } catch (const Mismatch& e) {
    note(Outcome::mismatch, e);
  } catch (const Timeout& e) {
    note(Outcome::timeout, e);
  } catch (const PeerLost& e) {
    note(Outcome::lost, e);
    record.lost_rank = e.rank();
  } catch (const Aborted& e) {
    note(Outcome::aborted, e);
  } catch (const std::exception& e) {
    note(Outcome::other, e);
  }
  record.damage = (error ? record.side->damage() : record.side->difference()).value_or("");
  record.side->scribble();
  record.fingerprint = record.side->fingerprint();
  if (around_.breakage == Breakage::late && ++ended_calls_ == late_write_at) {
    around_.cluster.at(now() + std::chrono::milliseconds(1), [&record] { record.side->scribble(std::byte{0x21}); });
  }
}

}  // namespace tutti::sim
