// elastic_crew.cpp: slots, their ends, and rounds.
// SPDX-License-Identifier: Apache-2.0
#include "launch/elastic_crew.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace tutti::launch {

struct ElasticCrew::Slot {
  int number = 0;
  int rank = 0;  // in this round
  State state = State::running;
  std::unique_ptr<LocalCrew> crew = {};
  int process = 0, status = 0;  // how it failed
  std::array<bool, 2> has_ended_stream = {};
  std::array<bool, 2> is_within_line = {};
};

// What a slot's process does. The end of a process that may be replaced is not the end of its rank.
class ElasticCrew::SlotListener final : public CrewListener {
 public:
  SlotListener(ElasticCrew& crew, Slot& slot, CrewListener& listener) : crew_(crew), slot_(slot), listener_(listener) {}

  void rank_ended(int slot, pid_t process, int status) override {
    slot_.state = status == 0 ? State::finished : State::failed;
    slot_.process = process;
    slot_.status = status;
    if (status == 0 || crew_.is_ending_) return listener_.rank_ended(slot, process, status);
    crew_.tell_ranks(slot, describe_process_end(process, status, ""));
  }
  void rank_not_started(int slot, int error) override { listener_.rank_not_started(slot, error); }
  void output(int slot, Stream stream, std::string_view bytes) override {
    slot_.is_within_line[static_cast<std::size_t>(stream)] = !bytes.ends_with('\n');
    listener_.output(slot, stream, bytes);
  }
  // Held back until it is known that nothing takes the slot's place.
  void output_ended(int, Stream stream) override { slot_.has_ended_stream[static_cast<std::size_t>(stream)] = true; }
  void part_lost(Cause cause) override { listener_.part_lost(std::move(cause)); }
  void left_behind(int processes) override {
    if (slot_.state == State::finished) listener_.left_behind(processes);
  }
  void notice(const std::string& sentence) override { listener_.notice(sentence); }

 private:
  ElasticCrew& crew_;
  Slot& slot_;
  CrewListener& listener_;
};

ElasticCrew::ElasticCrew(ElasticPlan plan) : plan_(std::move(plan)) {
  for (int number = 0; number < plan_.ranks.ranks; ++number) {
    slots_.push_back(std::make_unique<Slot>());
    slots_.back()->number = number;
  }
}

ElasticCrew::~ElasticCrew() = default;

void ElasticCrew::start() {
  begin_round();
  for (const auto& slot : slots_) start_slot(*slot);
}

// Numbers the ranks that take part, those that are to be replaced included.
void ElasticCrew::begin_round() {
  meeting_.reset();  // before the next one opens: ranks that wait there go on to the new one
  meeting_.emplace(plan_.begin_meeting(round_));
  Placement& placement = plan_.placement;
  meeting_->describe_in(placement);
  placement.restart = round_;
  placement.world_size = 0;
  for (const auto& slot : slots_) {
    if (slot->state == State::running) slot->rank = placement.world_size++;
  }
  placement.ranks_here = placement.world_size;
}

void ElasticCrew::start_slot(Slot& slot) {
  LocalPlan plan = plan_.ranks;
  const auto index = static_cast<std::size_t>(slot.number);
  plan.ranks = 1;
  plan.first_rank = slot.number;
  plan.id = fmt::format("{}-{}", plan_.placement.job, slot.number);
  plan.hears_rounds = true;
  if (!plan.processors.empty()) plan.processors = {plan_.ranks.processors[index]};
  plan.common_environment =
      common_block(plan_.environment, common_variables(plan_.placement, plan_.options, plan_.environment));
  plan.own_environment = {to_block(own_variables(plan_.placement, slot.rank))};
  slot.state = State::running;
  slot.has_ended_stream = {};
  slot.crew = std::make_unique<LocalCrew>(std::move(plan));
  slot.crew->start();
}

// "NAME=VALUE" with tabs between: what a rank's environment is to have from now on.
std::string ElasticCrew::round_line(const Slot& slot) const {
  const Placement& placement = plan_.placement;
  Variables variables = own_variables(placement, slot.rank);
  for (const auto& [name, value] : common_variables(placement, {}, plan_.environment)) {
    if (!name.ends_with("_THREADS") && name != "NPROC") variables.emplace_back(name, value);
  }
  return fmt::format("{}\n", fmt::join(to_block(variables), "\t"));
}

void ElasticCrew::watch(std::vector<pollfd>& into, Room room) const {
  for (const auto& slot : slots_) slot->crew->watch(into, room);
}

void ElasticCrew::serve(CrewListener& listener, Room room) {
  for (const auto& slot : slots_) {
    SlotListener of_slot(*this, *slot, listener);
    slot->crew->serve(of_slot, room);
  }
  if (!is_ending_) replace_lost(listener);
  for (const auto& slot : slots_) {
    if (slot->state == State::finished || is_ending_) let_streams_end(*slot, listener);
  }
  must_serve_ = false;
}

void ElasticCrew::let_streams_end(Slot& slot, CrewListener& listener) const {
  for (const Stream stream : {Stream::output, Stream::error}) {
    if (slot.has_ended_stream[static_cast<std::size_t>(stream)]) listener.output_ended(slot.number, stream);
  }
}

std::vector<ElasticCrew::Slot*> ElasticCrew::slots_in(State state) {
  std::vector<Slot*> found;
  for (const auto& slot : slots_) {
    if (slot->state == state) found.push_back(slot.get());
  }
  return found;
}

// All that are lost at this moment, in one round; one whose descendants still end comes with the next.
void ElasticCrew::replace_lost(CrewListener& listener) {
  std::vector<Slot*> lost = slots_in(State::failed);
  std::erase_if(lost, [](const Slot* slot) { return !slot->crew->is_gone() || !slot->crew->is_drained(); });
  if (lost.empty()) return;
  const auto survivors = static_cast<int>(slots_in(State::running).size());
  const bool replaces = round_ < plan_.options.restarts;
  if (!replaces && survivors < *plan_.options.ranks_min) return give_up(listener);
  ++round_;
  const std::string who = describe_failures(lost);
  for (Slot* slot : lost) slot->state = replaces ? State::running : State::finished;
  const std::vector<Slot*> members = slots_in(State::running);
  begin_round();
  listener.notice(fmt::format("{}; round {}: {}, {} rank{}", who, round_,
                              replaces ? "it is replaced" : "the others go on without it", members.size(),
                              members.size() == 1 ? "" : "s"));
  for (Slot* slot : lost) {
    for (const Stream stream : {Stream::output, Stream::error}) {
      if (slot->is_within_line[static_cast<std::size_t>(stream)]) listener.output(slot->number, stream, "\n");
    }
    if (!replaces) listener.rank_given_up(slot->number);
  }
  for (Slot* slot : members) {
    const bool is_survivor = std::ranges::find(lost, slot) == lost.end();
    if (!is_survivor) {
      start_slot(*slot);
    } else if (!slot->crew->tell_round(slot->number, round_line(*slot))) {
      listener.notice(
          fmt::format("rank {} does not read of new rounds, and will not take part in them; "
                      "is its program one for tutti.elastic.run?",
                      slot->number));
    }
  }
}

// The job ends with what the first of them did.
void ElasticCrew::give_up(CrewListener& listener) {
  for (Slot* slot : slots_in(State::failed)) {
    slot->state = State::finished;
    listener.rank_ended(slot->number, slot->process, slot->status);
  }
}

std::string ElasticCrew::describe_failures(const std::vector<Slot*>& failed) const {
  std::vector<std::string> texts;
  for (const Slot* slot : failed) {
    texts.push_back(fmt::format("rank {} ({}): {}", slot->number, plan_.options.program,
                                describe_process_end(slot->process, slot->status, "")));
  }
  return fmt::format("{}", fmt::join(texts, "; "));
}

bool ElasticCrew::is_gone() const {
  return std::ranges::all_of(slots_, [this](const auto& slot) {
    return slot->crew->is_gone() && (is_ending_ || slot->state == State::finished);
  });
}

void ElasticCrew::tell_ranks(int slot, const std::string& how) {
  const int rank = slots_[static_cast<std::size_t>(slot)]->rank;
  for (const auto& other : slots_) {
    if (other->state == State::running) other->crew->tell_ranks_of(meeting_->job, rank, how);
  }
}

void ElasticCrew::signal_ranks(int signal) {
  for (const auto& slot : slots_) slot->crew->signal_ranks(signal);
}

void ElasticCrew::signal_all(int signal) {
  for (const auto& slot : slots_) slot->crew->signal_all(signal);
}

void ElasticCrew::end(int signal, Duration grace) {
  is_ending_ = must_serve_ = true;
  for (const auto& slot : slots_) slot->crew->end(signal, grace);
}

}  // namespace tutti::launch
