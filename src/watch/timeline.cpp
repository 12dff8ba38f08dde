// timeline.cpp: reads the ranks of a job, or their files, and aligns their clocks.
// SPDX-License-Identifier: Apache-2.0
#include "watch/timeline.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <tuple>
#include <utility>

#include <tutti/error.hpp>

#include "base/system_files.hpp"

namespace tutti::watch {
namespace {

using record::CallRecord;

std::vector<record::Stay> stays_of(const record::Snapshot& snapshot) {
  std::vector<record::Stay> stays;
  for (const CallRecord& call : snapshot.calls) {
    if (!synchronises(call.verb) || call.ended_ns <= call.started_ns || call.state == record::State::failed) continue;
    stays.push_back({.group = snapshot.group_of(call).id,
                     .sequence = call.sequence,
                     .entered_ns = call.started_ns,
                     .left_ns = call.ended_ns});
  }
  return stays;
}

void shift(record::Snapshot& snapshot, std::int64_t ns) {
  snapshot.begin_ns += ns;
  snapshot.read_ns += ns;
  for (CallRecord& call : snapshot.calls) {
    call.started_ns += ns;
    if (!call.is_under_way()) call.ended_ns += ns;
  }
  for (record::StepRecord& step : snapshot.steps) {
    step.started_ns += ns;
    step.ended_ns += ns;
  }
}

}  // namespace

bool synchronises(Verb verb) {
  return verb == Verb::all_reduce || verb == Verb::all_gather || verb == Verb::reduce_scatter ||
         verb == Verb::all_to_all || verb == Verb::barrier;
}

Timeline::Timeline(std::vector<RankView> ranks) : ranks_(std::move(ranks)) {
  if (ranks_.empty()) throw InvalidArgument("there are no records of any rank");
  std::ranges::stable_sort(ranks_, {}, [](const RankView& rank) { return rank.snapshot.rank; });
  for (const RankView& rank : ranks_) {
    for (const record::GroupRecord& group : rank.snapshot.groups) {
      if (group.id != 0) members_[{group.id, group.rank}] = rank.snapshot.rank;
    }
  }
  align();
}

// Ranks of one host have one clock. The first rank of each other host stands for it.
void Timeline::align() {
  const auto first = stays_of(ranks_.front().snapshot);
  std::map<std::string, record::Offset> by_host = {{ranks_.front().snapshot.host, {}}};
  for (RankView& rank : ranks_) {
    const auto [found, is_new] = by_host.try_emplace(rank.snapshot.host);
    if (is_new) found->second = record::offset_between(first, stays_of(rank.snapshot));
    rank.offset = found->second;
    shift(rank.snapshot, rank.offset.ns);
  }
}

Timeline Timeline::of_job(const record::FoundJob& job) {
  std::vector<RankView> ranks;
  for (const record::FoundRecord& found : job.ranks) {
    const bool has_left = found.snapshot.life == record::Life::left;
    ranks.push_back({.snapshot = found.snapshot,
                     .seen = has_left         ? Seen::left
                             : found.is_alive ? Seen::running
                                              : Seen::gone});
  }
  return Timeline(std::move(ranks));
}

Timeline Timeline::of_folder(const std::string& folder) {
  std::vector<RankView> ranks;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() != record::file_ending) continue;
    const UniqueFd file(open(entry.path().c_str(), O_RDONLY | O_CLOEXEC));
    if (auto snapshot = record::read_snapshot(file.get(), record::Alive::no)) {
      const bool is_alive = start_of_process(static_cast<pid_t>(snapshot->process)) == snapshot->process_started;
      const Seen seen = snapshot->life == record::Life::left ? Seen::left : is_alive ? Seen::running : Seen::gone;
      ranks.push_back({.snapshot = std::move(*snapshot), .seen = seen});
    }
  }
  if (error) throw InvalidArgument(fmt::format("{}: {}", folder, error.message()));
  if (ranks.empty())
    throw InvalidArgument(
        fmt::format("{} has no records of ranks (rank-0{} and so on); tuttirun --trace {} writes them", folder,
                    record::file_ending, folder));
  return Timeline(std::move(ranks));
}

int Timeline::size() const {
  return std::ranges::max(ranks_, {}, [](const RankView& rank) { return rank.snapshot.size; }).snapshot.size;
}

std::int64_t Timeline::begin_ns() const {
  std::int64_t begin = ranks_.front().snapshot.read_ns;
  for (const RankView& rank : ranks_) {
    if (!rank.snapshot.calls.empty()) begin = std::min(begin, rank.snapshot.calls.front().started_ns);
  }
  return begin;
}

std::int64_t Timeline::end_ns() const {
  std::int64_t end = begin_ns();
  for (const RankView& rank : ranks_) {
    for (const CallRecord& call : rank.snapshot.calls) end = std::max(end, end_of(rank, call));
  }
  return end;
}

std::optional<int> Timeline::world_rank(std::uint64_t group, int member) const {
  const auto found = members_.find({group, member});
  return found == members_.end() ? std::nullopt : std::optional(found->second);
}

// Between two ranks, messages of one tag arrive in the order in which they were sent. Where the ring has forgotten the first ones, what is
// matched from the end is right.
std::vector<Arrow> Timeline::arrows() const {
  using Way = std::tuple<std::uint64_t, int, int, std::uint32_t>;
  std::map<Way, std::pair<std::deque<const CallRecord*>, std::deque<const CallRecord*>>> ways;
  for (const RankView& rank : ranks_) {
    for (const CallRecord& call : rank.snapshot.calls) {
      if (!call.is_message() || !call.peer || *call.peer < 0) continue;
      const record::GroupRecord& group = rank.snapshot.group_of(call);
      const auto peer = world_rank(group.id, *call.peer);
      if (!peer) continue;
      const int self = rank.snapshot.rank;
      if (call.verb == Verb::send) {
        ways[{group.id, self, *peer, call.tag}].first.push_front(&call);
      } else if (!call.is_under_way()) {
        ways[{group.id, *peer, self, call.tag}].second.push_front(&call);
      }
    }
  }
  std::vector<Arrow> arrows;
  for (const auto& [way, ends] : ways) {
    const auto& [sent, received] = ends;
    // Sent and not received yet: the latest ones.
    const std::size_t open = sent.size() > received.size() ? sent.size() - received.size() : 0;
    for (std::size_t i = 0; i < received.size() && i + open < sent.size(); ++i)
      arrows.push_back(
          {.from = std::get<1>(way), .to = std::get<2>(way), .sent = sent[i + open], .received = received[i]});
  }
  return arrows;
}

std::vector<StepArrow> Timeline::step_arrows() const {
  using record::StepKind;
  using Message = std::tuple<std::uint64_t, std::uint64_t, std::uint32_t, int, int, std::uint32_t>;
  const auto message = [](const record::StepRecord& step, int from, int to) {
    return Message{step.group, step.sequence, step.phase, from, to, step.tag};
  };
  std::map<Message, const record::StepRecord*> sent;
  for (const RankView& rank : ranks_) {
    for (const record::StepRecord& step : rank.snapshot.steps) {
      if (step.kind == StepKind::send) sent[message(step, rank.snapshot.rank, step.peer)] = &step;
    }
  }
  std::vector<StepArrow> arrows;
  for (const RankView& rank : ranks_) {
    for (const record::StepRecord& step : rank.snapshot.steps) {
      if (step.kind != StepKind::recv) continue;
      const auto found = sent.find(message(step, step.peer, rank.snapshot.rank));
      if (found != sent.end())
        arrows.push_back({.from = step.peer, .to = rank.snapshot.rank, .sent = found->second, .received = &step});
    }
  }
  return arrows;
}

}  // namespace tutti::watch
