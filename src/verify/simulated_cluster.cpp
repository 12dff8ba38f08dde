// simulated_cluster.cpp: who runs next, and what goes wrong.
// SPDX-License-Identifier: Apache-2.0
#include "verify/simulated_cluster.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <tutti/error.hpp>

namespace tutti::messages {

namespace {

std::string in_words(Duration duration) {
  if (duration == Duration::max()) return "for ever";
  return fmt::format("for {:.3f} ms", static_cast<double>(duration.count()) / 1e6);
}

TimePoint later(TimePoint now, Duration duration) { return deadline_after(now, duration); }

}  // namespace

std::string describe(const Fault& fault) {
  const auto what = [&]() -> std::string {
    switch (fault.kind) {
      case Fault::Kind::stall_link:
        return fmt::format("the link between ranks {} and {} stalls {}", fault.a, fault.b, in_words(fault.duration));
      case Fault::Kind::cut_link: return fmt::format("the link between ranks {} and {} is cut", fault.a, fault.b);
      case Fault::Kind::cut_one_way: return fmt::format("the link from rank {} to rank {} is cut", fault.a, fault.b);
      case Fault::Kind::slow_rank:
        return fmt::format("rank {} is slow: it is busy {} whenever it runs", fault.a, in_words(fault.duration));
      case Fault::Kind::stall_rank: return fmt::format("rank {} stalls {}", fault.a, in_words(fault.duration));
      case Fault::Kind::kill_rank: return fmt::format("rank {} is killed", fault.a);
      case Fault::Kind::delay_rank:
        return fmt::format("everything sent to rank {} is held up {}", fault.a, in_words(fault.duration));
    }
    return "nothing";
  };
  return fmt::format("at {:.3f} ms: {}", static_cast<double>(fault.at.count()) / 1e6, what());
}

Fault draw_fault(Random& random, int size, Duration latest, Duration longest) {
  Fault fault;
  const auto ranks = static_cast<std::uint64_t>(size);
  do {
    fault.kind = static_cast<Fault::Kind>(random.below(fault_kind_count));
  } while (size < 2 && fault.kind <= Fault::Kind::cut_one_way);
  fault.a = static_cast<int>(random.below(ranks));
  fault.b =
      size < 2 ? 0 : static_cast<int>((static_cast<std::uint64_t>(fault.a) + 1 + random.below(ranks - 1)) % ranks);
  fault.at = Duration(random.between(0, latest.count()));
  fault.duration = Duration(random.between(0, longest.count()));
  return fault;
}

SimulatedCluster::SimulatedCluster(const SimulationOptions& options)
    : options_(options),
      start_(clock_.now()),
      events_(clock_),
      random_(options.seed),
      network_(options, events_, random_.fork(), [this](link::Packet packet) {
        const int to = packet.to;
        link(to).deliver(std::move(packet));
      }) {
  if (options.size < 1) throw InvalidArgument(fmt::format("a simulated cluster of {} ranks; at least 1", options.size));
  ranks_.resize(static_cast<std::size_t>(options.size));
  link::SimulatedHost& host = *this;
  for (int rank = 0; rank < options.size; ++rank) {
    auto network = std::make_unique<link::SimulatedLink>(rank, options, host);
    links_.push_back(network.get());
    endpoints_.push_back(std::make_unique<Messages>(
        MessagesSetup{.rank = rank, .size = options.size, .clock = clock_, .network = std::move(network)}));
    ranks_[static_cast<std::size_t>(rank)].program = [this, rank] { return endpoint(rank).poll(); };
    make_ready(rank);
  }
}

void SimulatedCluster::set_program(int rank, std::function<bool()> program) {
  ranks_[static_cast<std::size_t>(rank)].program = std::move(program);
  make_ready(rank);
}

bool SimulatedCluster::may_run(int rank) const {
  const Rank& r = ranks_[static_cast<std::size_t>(rank)];
  return !r.killed && r.busy_until <= clock_.now();
}

void SimulatedCluster::make_ready(int rank) {
  Rank& r = ranks_[static_cast<std::size_t>(rank)];
  if (r.killed || std::exchange(r.ready, true)) return;
  ready_.push_back(rank);
}

// One timer per rank is enough: a rank that runs too early asks again.
void SimulatedCluster::make_ready_at(int rank, TimePoint time) {
  Rank& r = ranks_[static_cast<std::size_t>(rank)];
  time = std::max(time, clock_.now() + Duration(1));  // time must move, or a rank that keeps asking stops the world
  if (time == TimePoint::max() || time >= r.next_timer) return;
  r.next_timer = time;
  events_.at(time, [this, rank, time] {
    Rank& waiting = ranks_[static_cast<std::size_t>(rank)];
    if (waiting.next_timer == time) waiting.next_timer = TimePoint::max();
    make_ready(rank);
  });
}

bool SimulatedCluster::step() {
  if (ready_.empty()) return events_.run_next();
  run_one();
  return true;
}

void SimulatedCluster::run_one() {
  const std::size_t chosen = random_.below(ready_.size());
  const int rank = ready_[chosen];
  ready_[chosen] = ready_.back();
  ready_.pop_back();
  Rank& r = ranks_[static_cast<std::size_t>(rank)];
  r.ready = false;
  if (!may_run(rank)) {
    if (!r.killed) make_ready_at(rank, r.busy_until);
    return;
  }
  if (!r.program()) return;
  if (r.run_time > Duration(0)) keep_busy(rank, later(clock_.now(), r.run_time));
  make_ready(rank);
}

void SimulatedCluster::keep_busy(int rank, TimePoint until) {
  TimePoint& busy_until = ranks_[static_cast<std::size_t>(rank)].busy_until;
  busy_until = std::max(busy_until, until);
}

bool SimulatedCluster::run_until(const std::function<bool()>& condition, Duration limit) {
  const TimePoint end = later(clock_.now(), limit);
  while (!condition()) {
    if (ready_.empty() && events_.next_time() > end) return false;
    if (!step()) return false;
  }
  return true;
}

void SimulatedCluster::run_for(Duration duration) {
  const TimePoint end = later(clock_.now(), duration);
  run_until([] { return false; }, duration);
  clock_.advance_to(end);
}

void SimulatedCluster::inject(const Fault& fault) {
  at(fault.at, [this, fault] { apply(fault); });
}

void SimulatedCluster::apply(const Fault& fault) {
  const TimePoint now = clock_.now();
  switch (fault.kind) {
    case Fault::Kind::stall_link: return network_.stall(fault.a, fault.b, later(now, fault.duration));
    case Fault::Kind::cut_link: network_.cut(fault.b, fault.a); [[fallthrough]];
    case Fault::Kind::cut_one_way: return network_.cut(fault.a, fault.b);
    case Fault::Kind::slow_rank: ranks_[static_cast<std::size_t>(fault.a)].run_time = fault.duration; return;
    case Fault::Kind::stall_rank: return keep_busy(fault.a, later(now, fault.duration));
    case Fault::Kind::delay_rank: return network_.delay(fault.a, fault.duration, TimePoint::max());
    case Fault::Kind::kill_rank: ranks_[static_cast<std::size_t>(fault.a)].killed = true; return network_.kill(fault.a);
  }
}

}  // namespace tutti::messages
