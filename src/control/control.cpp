// control.cpp: the interface for the group layer: its calls and its notifications.
// SPDX-License-Identifier: Apache-2.0
#include "control/control.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <tutti/error.hpp>

#include "base/bytes.hpp"
#include "control/overloaded.hpp"

namespace tutti::control {

namespace {

Cause cause_of_leaving(int rank) {
  return {.kind = Cause::Kind::lost, .culprits = {rank}, .sequence = 0, .text = fmt::format("rank {} has left", rank)};
}

}  // namespace

Control::Control(Transport& transport, const Clock& clock, Random random, const ControlOptions& options)
    : clock_(&clock),
      options_(options),
      rank_(transport.rank()),
      size_(transport.size()),
      network_(transport, clock, options, *this),
      verdicts_(rank_, size_, options.verdicts),
      creations_(rank_, random, options.retry,
                 {.send = [this](int to, RoutedBody body) { network_.send(to, std::move(body)); },
                  .abort_group = [this](std::uint64_t group, const Cause& cause) { abort(group, 0, cause); },
                  .gone = [this](int rank) -> const Cause* {
                    for (const auto* const gone : {&left_, &lost_}) {
                      if (const auto found = gone->find(rank); found != gone->end()) return &found->second;
                    }
                    return nullptr;
                  }}),
      store_(rank_, size_, options.retry,
             {.send = [this](int to, RoutedBody body) { network_.send(to, std::move(body)); },
              .flood = [this](StoreMoved moved) { network_.flood(moved); },
              .is_lost = [this](int rank) { return silenced() || lost_.contains(rank); },
              .is_there = [this](int rank) { return !lost_.contains(rank) && !left_.contains(rank); }}) {}

void Control::start(ControlListener& listener) {
  listener_ = &listener;
  network_.start();
}

bool Control::poll() {
  if (listener_ == nullptr || has_said_goodbye_) return false;
  const TimePoint now = clock_->now();
  bool moved = false;
  if (!silenced()) {
    network_.poll();
    while (!silenced()) {
      const auto decision = verdicts_.decide(now);
      if (!decision) break;
      moved = true;
      FloodBody verdict = std::visit([](const auto& v) -> FloodBody { return v; }, decision->verdict);
      decision->for_all ? network_.flood(std::move(verdict)) : on_flood(rank_, verdict);
    }
    moved = creations_.poll(now) || moved;
    moved = store_.poll(now) || moved;
  }
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
  return std::min({creations_.next_timer(), store_.next_timer(), verdicts_.next_timer(network_.last_poll()),
                   network_.next_timer()});
}

void Control::abort(std::uint64_t group, std::uint32_t epoch, const Cause& cause) {
  if (verdicts_.proposed(group, epoch)) return;
  if (silenced()) return break_group({group, epoch, cause});  // nobody to agree with
  network_.flood(Proposal{group, epoch, cause});
}

void Control::refuse(std::uint64_t group, std::uint32_t epoch, std::uint64_t sequence, std::string_view text) {
  network_.flood(Refused{group, epoch, sequence, std::string(text)});
}

std::uint64_t Control::probe(int to, std::span<const std::byte> question) {
  if (to < 0 || to >= size_) throw InvalidArgument(fmt::format("rank {}: a probe of rank {} of {}", rank_, to, size_));
  if (question.size() > probe_bytes_max) {
    throw InvalidArgument(
        fmt::format("rank {}: a probe of {} bytes; at most {}", rank_, question.size(), probe_bytes_max));
  }
  const std::uint64_t id = next_probe_++;
  network_.send(to, Probe{id, {question.begin(), question.end()}});
  return id;
}

void Control::answer(int to, std::uint64_t id, std::span<const std::byte> answer) {
  if (answer.size() > probe_bytes_max) {
    throw InvalidArgument(
        fmt::format("rank {}: an answer of {} bytes; at most {}", rank_, answer.size(), probe_bytes_max));
  }
  network_.send(to, ProbeAnswer{id, {answer.begin(), answer.end()}});
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

void Control::give_up(const Creation& creation, const Cause& cause) {
  if (creation.state == Creation::State::ready) return abort(creation.group, 0, cause);
  creations_.give_up(creation, cause);
}

void Control::announce_leave(std::span<const Position> positions) {
  if (silenced() || std::exchange(is_leaving_, true)) return;
  verdicts_.retire(rank_);
  creations_.leave(cause_of_leaving(rank_));
  network_.begin_leaving();
  const bool has_store = store_.leave(clock_->now());
  do {
    const auto part = positions.first(std::min(positions.size(), positions_max));
    positions = positions.subspan(part.size());
    network_.flood(Goodbye{{part.begin(), part.end()}, !positions.empty(), has_store});
  } while (!positions.empty());
}

void Control::leave() {
  if (has_said_goodbye_) return;
  announce_leave({});
  has_said_goodbye_ = true;
  network_.silence();
  news_.clear();
}

// ---- what becomes known

void Control::received(int peer, std::span<const std::byte> bytes) {
  if (silenced() || lost_.contains(peer)) return;
  try {
    network_.receive(peer, bytes);
  } catch (const MalformedMessage& error) {
    link_lost(peer, fmt::format("it sent what is no control message: {}", error.what()));
  }
}

void Control::on_goodbye_of(int peer) {
  news_.emplace_back([this, peer](ControlListener&) { network_.confirm_goodbye(peer); });
}

void Control::on_flood(int origin, const FloodBody& body) {
  const TimePoint now = clock_->now();
  std::visit(Overloaded{
                 [&](const Suspect& suspect) { on_suspect(origin, suspect); },
                 [&](const Alive& alive) { verdicts_.alive(now, origin, std::chrono::milliseconds(alive.away_ms)); },
                 [&](const Lost& lost) { lose(lost.rank, lost.cause); },
                 [&](const Proposal& proposal) { verdicts_.propose(now, origin, proposal); },
                 [&](const Broken& broken) { break_group(broken); },
                 [&](const Goodbye& goodbye) {
                   retire(origin, goodbye.positions);
                   store_.rank_leaves(now, origin, goodbye.has_store);
                 },
                 [&](const Departed& departed) { part_from(departed.rank); },
                 [&](const Refused& r) {
                   news_.emplace_back([refusal = Refusal{origin, r.group, r.epoch, r.sequence, r.text}](
                                          ControlListener& l) { l.on_refusal(refusal); });
                 },
                 [&](const StoreMoved& moved) { store_.on_moved(now, moved); },
             },
             body);
}

void Control::on_routed(int origin, RoutedBody body) {
  const TimePoint now = clock_->now();
  std::visit(Overloaded{
                 [&](Probe& probe) {
                   news_.emplace_back([origin, probe = std::move(probe)](ControlListener& l) {
                     l.on_probe(origin, probe.id, probe.question);
                   });
                 },
                 [&](ProbeAnswer& answer) {
                   news_.emplace_back([origin, answer = std::move(answer)](ControlListener& l) {
                     l.on_probe_answer(origin, answer.id, answer.answer);
                   });
                 },
                 [&](const Join& join) { creations_.on_join(origin, join); },
                 [&](const Missing& missing) { creations_.on_missing(missing); },
                 [&](const Made& made) { creations_.on_made(origin, made); },
                 [&](const Taken& taken) { creations_.on_taken(origin, taken); },
                 [&](const GaveUp& given_up) { creations_.on_gave_up(origin, given_up); },
                 [&](const CalledOff& called_off) { creations_.on_called_off(called_off); },
                 [&](const StoreAsked& asked) { store_.on_asked(origin, asked); },
                 [&](const StoreAnswered& answered) { store_.on_answered(answered); },
                 [&](const StoreOffered& offered) { store_.on_offered(origin, offered); },
                 [&](const StoreFetched& fetched) { store_.on_fetched(now, origin, fetched); },
                 [&](const StorePart& part) { store_.on_part(origin, part); },
             },
             body);
}

// One answer serves all accusers of the same time. A rank that was stopped for long says so: the silence was then its
// own and not the fault of the link to the first accuser.
void Control::on_suspect(int accuser, const Suspect& message) {
  const TimePoint now = clock_->now();
  // A rank that could not connect to a rank that has left learns it from those that had a link to it.
  if (!message.is_witness && accuser != rank_ && parted_.contains(message.accused) &&
      wanted_links(message.accused, size_, {}).contains(rank_)) {
    network_.flood(Departed{message.accused});
  }
  verdicts_.suspect(now, accuser, message);
  if (message.accused != rank_ || now - answered_ < options_.verdicts.settle / 2) return;
  answered_ = now;
  const auto away = std::chrono::duration_cast<std::chrono::milliseconds>(network_.was_away_for(now));
  network_.flood(Alive{static_cast<std::uint32_t>(std::min<std::int64_t>(away.count(), UINT32_MAX))});
}

void Control::link_lost(int peer, std::string_view reason) {
  network_.stop_telling(peer);
  accuse({peer, true, std::string(reason)});
}

void Control::process_ended(int rank, std::string_view how) {
  if (rank < 0 || rank >= size_ || rank == rank_ || !ended_.insert(rank).second) return;
  if (silenced() || lost_.contains(rank) || left_.contains(rank)) return;
  if (!wanted_links(rank, size_, {}).contains(rank_)) return;
  network_.stop_telling(rank);
  network_.ban(rank);
  network_.mend();
  network_.flood(Suspect{rank, true, std::string(how), true});
}

void Control::on_silent(int peer, const std::string& why) { accuse({peer, true, why}); }

// A rank does not leave before the links of its place in the network are open and carry its goodbye. So a rank that
// belongs at the other end of such a link and could not connect knows that the peer did not leave. Other ranks do not
// know.
void Control::link_refused(int peer, std::string_view reason) {
  if (left_.contains(peer)) return part_from(peer);
  network_.stop_telling(peer);
  accuse({peer, wanted_links(peer, size_, {}).contains(rank_), std::string(reason)});
}

// The link to the accused is not used any more.
void Control::accuse(const Suspect& suspect) {
  if (silenced() || !network_.is_usable(suspect.accused)) return;
  network_.ban(suspect.accused);
  network_.mend();
  if (!lost_.contains(suspect.accused)) network_.flood(suspect);
}

// A rank that has announced that it leaves can still be lost, with data that it had yet to send.
void Control::lose(int rank, const Cause& cause) {
  if (lost_.contains(rank) || parted_.contains(rank)) return;
  lost_.emplace(rank, cause);
  news_.emplace_back([rank, cause](ControlListener& listener) { listener.on_lost(rank, cause); });
  verdicts_.remove(rank);
  creations_.remove_rank(rank, cause);
  network_.set_gone(rank);
  if (rank == rank_) {
    network_.silence();
  } else {
    network_.stop_telling(rank);
    network_.ban(rank);
    network_.mend();
  }
  store_.rank_lost(clock_->now(), rank);
}

// The rank starts no more calls and decides nothing any more; its links stay until it closes them.
void Control::retire(int rank, std::span<const Position> positions) {
  if (rank == rank_ || lost_.contains(rank)) return;
  const Cause cause = cause_of_leaving(rank);
  const bool is_first = left_.try_emplace(rank, cause).second;
  if (!is_first && positions.empty()) return;
  news_.emplace_back([rank, all = std::vector(positions.begin(), positions.end())](ControlListener& listener) {
    listener.on_left(rank, all);
  });
  if (!is_first) return;
  verdicts_.retire(rank);
  creations_.member_left(rank, cause);
  if (closed_.contains(rank)) part_from(rank);
}

// The rank's goodbye, and before it its decisions, may still be on their way over other ranks: until then it counts as
// the decider.
void Control::link_parted(int peer) {
  if (peer == rank_ || lost_.contains(peer) || !closed_.insert(peer).second) return;
  network_.stop_telling(peer);
  network_.ban(peer);
  // Often all ranks leave at once. Links that would be closed again soon are not worth their handshakes. Floods that
  // are missed meanwhile come with the new link.
  network_.mend_later();
  if (left_.contains(peer)) return part_from(peer);
  news_.emplace_back([peer](ControlListener& listener) { listener.on_left(peer, {}); });
}

void Control::part_from(int rank) {
  if (rank == rank_ || lost_.contains(rank) || !parted_.insert(rank).second) return;
  network_.set_gone(rank);
  retire(rank, {});
  link_parted(rank);
  creations_.remove_rank(rank, left_.at(rank));
  store_.rank_left(rank);
  verdicts_.remove(rank);
}

void Control::break_group(const Broken& broken) {
  if (!verdicts_.settle(broken.group, broken.epoch)) return;
  news_.emplace_back(
      [broken](ControlListener& listener) { listener.on_abort(broken.group, broken.epoch, broken.cause); });
}

}  // namespace tutti::control
