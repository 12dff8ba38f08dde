// control.cpp: what the group layer calls, and what is told to it.
// SPDX-License-Identifier: Apache-2.0
#include "control/control.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <tutti/error.hpp>

namespace tutti::control {

namespace {

Cause cause_of_leaving(int rank) {
  return {.kind = Cause::Kind::lost, .culprits = {rank}, .sequence = 0, .text = fmt::format("rank {} has left", rank)};
}

}  // namespace

Control::Control(Transport& transport, const Clock& clock, Random random, const ControlOptions& options)
    : transport_(&transport),
      clock_(&clock),
      options_(options),
      rank_(transport.rank()),
      size_(transport.size()),
      links_(rank_, size_),
      verdicts_(rank_, size_, options.verdicts),
      creations_(rank_, random, options.retry,
                 {.send = [this](int to, RoutedBody body) { send(to, std::move(body)); },
                  .abort_group = [this](std::uint64_t group, const Cause& cause) { abort(group, 0, cause); },
                  .gone = [this](int rank) { return why_gone(rank); }}) {}

void Control::start(ControlListener& listener) {
  listener_ = &listener;
  last_poll_ = clock_->now();
  for (const int peer : links_.missing()) {
    transport_->attach(peer);
    links_.add(peer, last_poll_);
  }
}

bool Control::poll() {
  if (listener_ == nullptr || has_said_goodbye_) return false;
  const TimePoint now = clock_->now();
  bool moved = false;
  if (!silenced()) {
    if (now >= mend_at_) mend_links();
    beat_and_listen(now);
    moved = decide(now);
    moved = creations_.poll(now) || moved;
  }
  last_poll_ = now;
  while (!news_.empty()) {  // the listener may cause more, or say goodbye
    const auto news = std::move(news_.front());
    news_.pop_front();
    news(*listener_);
    moved = true;
  }
  return moved;
}

TimePoint Control::next_timer() const {
  if (!news_.empty()) return clock_->now();
  if (silenced()) return TimePoint::max();
  TimePoint next = std::min(creations_.next_timer(), verdicts_.next_timer(last_poll_));
  for (const auto& [peer, use] : links_.uses()) {
    next = std::min({next, use.sent + options_.beat, use.heard + silence_limit(use)});
  }
  return std::min(next, mend_at_);
}

void Control::abort(std::uint64_t group, std::uint32_t epoch, const Cause& cause) {
  if (verdicts_.proposed(group, epoch)) return;
  if (silenced()) return break_group({group, epoch, cause});  // nobody to agree with
  flood(Proposal{group, epoch, cause});
}

void Control::refuse(std::uint64_t group, std::uint32_t epoch, std::uint64_t sequence, std::string_view text) {
  flood(Refused{group, epoch, sequence, std::string(text)});
}

std::uint64_t Control::probe(int to, std::span<const std::byte> question) {
  if (to < 0 || to >= size_) throw InvalidArgument(fmt::format("rank {}: a probe of rank {} of {}", rank_, to, size_));
  if (question.size() > probe_bytes_max) {
    throw InvalidArgument(
        fmt::format("rank {}: a probe of {} bytes; at most {}", rank_, question.size(), probe_bytes_max));
  }
  const std::uint64_t id = next_probe_++;
  send(to, Probe{id, {question.begin(), question.end()}});
  return id;
}

void Control::answer(int to, std::uint64_t id, std::span<const std::byte> answer) {
  if (answer.size() > probe_bytes_max) {
    throw InvalidArgument(
        fmt::format("rank {}: an answer of {} bytes; at most {}", rank_, answer.size(), probe_bytes_max));
  }
  send(to, ProbeAnswer{id, {answer.begin(), answer.end()}});
}

std::shared_ptr<const Creation> Control::create(CreationRequest request) {
  std::vector<int> sorted = request.members;
  std::ranges::sort(sorted);
  const auto complain = [&](std::string_view why) {
    throw InvalidArgument(fmt::format("rank {}: a group of {} members {}", rank_, request.members.size(), why));
  };
  if (sorted.empty()) complain("cannot be made: name at least this rank");
  if (sorted.front() < 0 || sorted.back() >= size_)
    complain(fmt::format("names a rank outside the world of {}", size_));
  if (std::ranges::adjacent_find(sorted) != sorted.end()) complain("names a rank twice");
  if (!std::ranges::binary_search(sorted, rank_)) complain("without this rank: only members make a group");
  if (request.blob.size() > blob_bytes_max) complain(fmt::format("with a blob of more than {} bytes", blob_bytes_max));
  return creations_.start(clock_->now(), std::move(request));
}

void Control::announce_leave(std::span<const Position> positions) {
  if (silenced() || std::exchange(is_leaving_, true)) return;
  verdicts_.retire(rank_);
  creations_.leave(cause_of_leaving(rank_));
  for (const int peer : links_.peers()) goodbye_awaits_.insert(peer);
  do {
    const auto part = positions.first(std::min(positions.size(), positions_max));
    positions = positions.subspan(part.size());
    flood(Goodbye{{part.begin(), part.end()}, !positions.empty()});
  } while (!positions.empty());
}

void Control::leave() {
  if (has_said_goodbye_) return;
  announce_leave({});
  has_said_goodbye_ = true;
  news_.clear();
}

const Cause* Control::loss(int rank) const {
  const auto found = lost_.find(rank);
  return found == lost_.end() ? nullptr : &found->second;
}

const Cause* Control::why_gone(int rank) const {
  const auto found = left_.find(rank);
  return found == left_.end() ? loss(rank) : &found->second;
}

// ---- what becomes known

bool Control::decide(TimePoint now) {
  bool decided = false;
  while (!silenced()) {
    const auto decision = verdicts_.decide(now);
    if (!decision) return decided;
    decided = true;
    FloodBody verdict = std::visit([](const auto& v) -> FloodBody { return v; }, decision->verdict);
    if (decision->for_all) {
      flood(std::move(verdict));
    } else {
      on_flood(rank_, verdict);
    }
  }
  return decided;
}

// A rank that has announced its leave can still be lost, with what it had yet to send.
void Control::lose(int rank, const Cause& cause) {
  if (lost_.contains(rank) || parted_.contains(rank)) return;
  lost_.emplace(rank, cause);
  tell([rank, cause](ControlListener& listener) { listener.on_lost(rank, cause); });
  remove_rank(rank, cause);
}

// It starts no more calls and decides nothing any more; its links stay until it closes them.
void Control::retire(int rank, std::span<const Position> positions) {
  if (rank == rank_ || lost_.contains(rank)) return;
  const Cause cause = cause_of_leaving(rank);
  const bool is_first = left_.try_emplace(rank, cause).second;
  if (!is_first && positions.empty()) return;
  tell([rank, all = std::vector(positions.begin(), positions.end())](ControlListener& listener) {
    listener.on_left(rank, all);
  });
  if (!is_first) return;
  verdicts_.retire(rank);
  creations_.member_left(rank, cause);
  if (closed_.contains(rank)) part_from(rank);
}

// Its goodbye may still be on its way, over others, and before that what it has decided: until then it counts as the decider.
void Control::link_parted(int peer) {
  if (peer == rank_ || lost_.contains(peer) || !closed_.insert(peer).second) return;
  quiet_.erase(peer);
  goodbye_awaits_.erase(peer);
  links_.ban(peer);
  // Often everybody leaves at once: links that would be given up again in a moment are not worth their handshakes. Floods that
  // are missed meanwhile come with the new link.
  mend_at_ = std::min(mend_at_, clock_->now() + options_.mend);
  if (left_.contains(peer)) return part_from(peer);
  tell([peer](ControlListener& listener) { listener.on_left(peer, {}); });
}

void Control::part_from(int rank) {
  if (rank == rank_ || lost_.contains(rank) || !parted_.insert(rank).second) return;
  retire(rank, {});
  link_parted(rank);
  creations_.remove_rank(rank, left_.at(rank));
  verdicts_.remove(rank);
}

void Control::remove_rank(int rank, const Cause& cause) {
  verdicts_.remove(rank);
  creations_.remove_rank(rank, cause);
  if (rank == rank_) return;
  links_.ban(rank);
  quiet_.erase(rank);
  goodbye_awaits_.erase(rank);
  mend_links();
}

void Control::break_group(const Broken& broken) {
  if (!verdicts_.settle(broken.group, broken.epoch)) return;
  tell([broken](ControlListener& listener) { listener.on_abort(broken.group, broken.epoch, broken.cause); });
}

}  // namespace tutti::control
