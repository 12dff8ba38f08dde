// simulated_group.hpp: a group whose ranks live in one test, on a simulated cluster with virtual time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "group/core.hpp"
#include "group/runtime.hpp"
#include "tests/support/forwarding_transport.hpp"
#include "verify/simulated_cluster.hpp"

namespace tutti {

class SimulatedGroup {
 public:
  static constexpr std::uint64_t id = 1;

  explicit SimulatedGroup(int size) : cluster_({.size = size}) {
    for (int rank = 0; rank < size; ++rank) {
      RuntimeParts parts;
      parts.clock = &cluster_.clock();
      parts.transport = std::make_unique<messages::ForwardingTransport>(cluster_.endpoint(rank));
      parts.hosts.assign(static_cast<std::size_t>(size), "node");
      parts.threaded = false;
      parts.log = Log(Log::Level::warn, fmt::format("rank {}", rank), [this](std::string_view line) { log += line; });
      runtimes_.push_back(std::make_shared<Runtime>(std::move(parts)));
      runtimes_.back()->start();
      cores_.push_back(make_core(rank));
      cluster_.set_program(rank, [this, rank] { return step(rank); });
    }
  }

  [[nodiscard]] GroupCore& core(int rank) { return *cores_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] GroupParts& parts(int rank) { return core(rank).parts(); }
  [[nodiscard]] Runtime& runtime(int rank) { return *runtimes_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] TimePoint now() const { return cluster_.clock().now(); }
  /// Drops the rank's handle of the group.
  void close(int rank) { cores_[static_cast<std::size_t>(rank)].reset(); }
  void run_for(Duration duration) {
    for (int rank = 0; rank < cluster_.size(); ++rank) cluster_.wake(rank);
    cluster_.run_for(duration);
  }
  std::shared_ptr<Operation> start(int rank, const CallTerms& terms, Duration timeout = {}) {
    GroupCore::Entry entry;
    return core(rank).start(entry, terms, timeout);
  }

  std::string log;  // what the ranks wrote

 private:
  std::shared_ptr<GroupCore> make_core(int rank) {
    GroupFacts facts{.rank = rank, .size = cluster_.size(), .id = id};
    facts.world_of.resize(static_cast<std::size_t>(cluster_.size()));
    std::iota(facts.world_of.begin(), facts.world_of.end(), 0);
    Runtime& runtime = *runtimes_.back();
    return GroupCore::make(runtimes_.back(), std::move(facts), runtime.parts().table);
  }
  bool step(int rank) {
    const auto guard = runtime(rank).lock();
    const bool moved = runtime(rank).poll();
    cluster_.endpoint(rank).wait(runtime(rank).next_look(), Transport::Events::all);
    return moved;
  }

  messages::SimulatedCluster cluster_;
  std::vector<std::shared_ptr<Runtime>> runtimes_;
  std::vector<std::shared_ptr<GroupCore>> cores_;
};

/// What the operation ended with, in words; empty: it ended well.
inline std::string error_of(const Operation& operation) {
  try {
    operation.rethrow();
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

}  // namespace tutti
