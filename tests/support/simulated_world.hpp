// simulated_world.hpp: for tests: a control network per rank of a simulated cluster, and what each rank was told.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "control/control.hpp"
#include "verify/simulated_cluster.hpp"

namespace tutti::control {

// One rank: forwards what its transport reports, and records what its control network reports.
class SimulatedMember final : public TransportListener, public ControlListener {
 public:
  SimulatedMember(messages::SimulatedCluster& cluster, int rank, std::uint64_t seed, const ControlOptions& options)
      : network(cluster.endpoint(rank), cluster.clock(), Random(seed), options) {
    Transport& endpoint = cluster.endpoint(rank);
    endpoint.listen(this);
    network.start(*this);
    cluster.set_program(rank, [this, &endpoint] {
      const bool heard = endpoint.poll();
      const bool moved = network.poll();
      endpoint.wait(network.next_timer(), Transport::Events::all);
      return heard || moved;
    });
  }

  Verdict arrived(int, const Envelope&) override { return Verdict::keep; }
  void control(int peer, std::span<const std::byte> message) override { network.received(peer, message); }
  void lost(int peer, std::string_view reason) override { network.link_lost(peer, reason); }
  void unreachable(int peer, std::string_view reason) override { network.link_refused(peer, reason); }
  void parted(int peer) override { network.link_parted(peer); }

  void on_abort(std::uint64_t group, std::uint32_t, const Cause& cause) override { aborts.emplace_back(group, cause); }
  void on_lost(int rank, const Cause& cause) override { losses.emplace_back(rank, cause); }
  void on_left(int rank, std::span<const Position> told) override {
    if (std::ranges::find(left, rank) == left.end()) left.push_back(rank);
    for (const Position& each : told) positions.emplace_back(rank, each);
  }
  void on_refusal(const Refusal& refusal) override { refusals.push_back(refusal); }
  void on_probe(int from, std::uint64_t id, std::span<const std::byte> question) override {
    network.answer(from, id, question);
  }
  void on_probe_answer(int from, std::uint64_t id, std::span<const std::byte> answer) override {
    answers.emplace_back(from, id, answer.size());
  }

  [[nodiscard]] bool was_told_of_the_loss_of(int rank) const {
    return std::ranges::any_of(losses, [&](const auto& loss) { return loss.first == rank; });
  }

  Control network;
  std::vector<std::pair<std::uint64_t, Cause>> aborts;
  std::vector<std::pair<int, Cause>> losses;
  std::vector<int> left;
  std::vector<Refusal> refusals;
  std::vector<std::pair<int, Position>> positions;
  std::vector<std::tuple<int, std::uint64_t, std::size_t>> answers;
};

struct SimulatedWorld {
  explicit SimulatedWorld(const messages::SimulationOptions& simulation, const ControlOptions& options = {})
      : cluster(simulation) {
    for (int rank = 0; rank < simulation.size; ++rank) {
      const std::uint64_t seed = Hash(simulation.seed).add(static_cast<std::uint64_t>(rank)).value();
      members.push_back(std::make_unique<SimulatedMember>(cluster, rank, seed, options));
    }
  }
  SimulatedMember& operator[](int rank) { return *members[static_cast<std::size_t>(rank)]; }
  Control& network(int rank) { return (*this)[rank].network; }
  // Calls of a test are made from outside a rank's program, which must then run.
  void wake_all() {
    for (int rank = 0; rank < cluster.size(); ++rank) cluster.wake(rank);
  }
  void run_for(Duration duration) {
    wake_all();
    cluster.run_for(duration);
  }

  messages::SimulatedCluster cluster;
  std::vector<std::unique_ptr<SimulatedMember>> members;
};

// Ranks of a world that leave as processes do: each announces it, stays until its goodbye is known, and closes its links.
class LeavingRanks {
 public:
  explicit LeavingRanks(SimulatedWorld& world) : world_(world) {}

  void announce(int rank) {
    world_.network(rank).announce_leave({});
    world_.cluster.wake(rank);
    go_on(rank);
  }
  // In the order in which they closed their links.
  [[nodiscard]] const std::vector<int>& gone() const { return gone_; }

 private:
  void go_on(int rank) {
    if (!world_.cluster.alive(rank)) return;
    if (!world_.network(rank).may_leave()) {
      world_.cluster.at(world_.cluster.clock().now() - start_ + std::chrono::microseconds(20),
                        [this, rank] { go_on(rank); });
      return;
    }
    world_.network(rank).leave();
    world_.cluster.endpoint(rank).close(TimePoint::max());
    gone_.push_back(rank);
  }

  SimulatedWorld& world_;
  TimePoint start_ = world_.cluster.clock().now();
  std::vector<int> gone_;
};

}  // namespace tutti::control
