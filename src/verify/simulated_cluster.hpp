// simulated_cluster.hpp: a whole cluster in one process: virtual time, a modelled network, faults, one seed, exact replay.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <tutti/transport.hpp>

#include "base/random.hpp"
#include "messages/messages.hpp"
#include "verify/simulated_link.hpp"
#include "verify/simulated_network.hpp"
#include "verify/simulated_time.hpp"

namespace tutti::messages {

using link::SimulationOptions;

// One thing that goes wrong.
struct Fault {
  enum class Kind : std::uint8_t {
    stall_link,   // nothing passes between a and b for a while; nothing is lost
    cut_link,     // nothing passes between a and b any more; both notice
    cut_one_way,  // nothing passes from a to b any more; a notices
    slow_rank,    // every run of a's program takes `duration`
    stall_rank,   // a does nothing for a while; its links stay open
    kill_rank,    // a is gone; its links break
    delay_rank,   // what is sent to a takes `duration` longer, for as long as the simulation lasts
  };
  Kind kind = Kind::kill_rank;
  int a = 0;
  int b = 0;            // the other end of a link
  Duration at{};        // after the start of the simulation
  Duration duration{};  // Duration::max(): for ever
};
inline constexpr int fault_kind_count = 7;

// "at 12.5 ms: the link between ranks 1 and 3 is cut".
std::string describe(const Fault& fault);
// Any kind and place, at a time before `latest`; durations up to `longest`. A world of one gets no link faults.
Fault draw_fault(Random& random, int size, Duration latest, Duration longest);

// n endpoints, one thread, one clock. Ranks are programs that are given the processor when something happened for them;
// the order among those that are ready is drawn from the seed.
//
//  1. The same options, programs and faults give the same history: trace() tells.
//  2. Time moves only when no rank has anything to do. Programs take no time, except on slow ranks.
//  3. Nothing blocks: Transport::wait() only asks for the processor at that time.
class SimulatedCluster final : private link::SimulatedHost {
 public:
  explicit SimulatedCluster(const SimulationOptions& options);

  [[nodiscard]] int size() const { return options_.size; }
  [[nodiscard]] Messages& endpoint(int rank) { return *endpoints_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] const Clock& clock() const { return clock_; }
  [[nodiscard]] Duration elapsed() const { return clock_.now() - start_; }
  // What a rank does when it has the processor: true if anything moved, then it is asked again. Until one is set, the
  // rank polls its endpoint. Every rank is ready at the start.
  void set_program(int rank, std::function<bool()> program);
  // Gives a rank the processor from outside: a test that called one of its endpoint's methods.
  void wake(int rank) { make_ready(rank); }
  // Lets something happen at a time after the start, on nobody's processor.
  void at(Duration after_start, std::function<void()> action) { events_.at(start_ + after_start, std::move(action)); }
  void inject(const Fault& fault);

  // Runs one ready rank, or moves the clock to the next event; false when nothing is left to happen.
  bool step();
  // Steps until the condition holds; false if it does not within `limit` of virtual time, or nothing is left to happen.
  bool run_until(const std::function<bool()>& condition, Duration limit);
  // Lets so much virtual time pass.
  void run_for(Duration duration);

  [[nodiscard]] bool alive(int rank) const override { return !ranks_[static_cast<std::size_t>(rank)].killed; }
  [[nodiscard]] std::uint64_t trace() const { return network_.trace(); }

 private:
  struct Rank {
    std::function<bool()> program;
    TimePoint busy_until{};
    Duration run_time{};
    bool killed = false;
    bool ready = false;
    TimePoint next_timer = TimePoint::max();
  };

  link::EventQueue& events() override { return events_; }
  link::SimulatedNetwork& network() override { return network_; }
  link::SimulatedLink& link(int rank) override { return *links_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] bool may_run(int rank) const override;
  void make_ready(int rank) override;
  void make_ready_at(int rank, TimePoint time) override;
  void run_one();
  void apply(const Fault& fault);
  void keep_busy(int rank, TimePoint until);

  SimulationOptions options_;
  link::VirtualClock clock_;
  TimePoint start_;
  link::EventQueue events_;
  Random random_;
  link::SimulatedNetwork network_;
  std::vector<Rank> ranks_;
  std::vector<link::SimulatedLink*> links_;  // the endpoints own them
  std::vector<std::unique_ptr<Messages>> endpoints_;
  std::vector<int> ready_;
};

}  // namespace tutti::messages
