// native.hpp: the backend that plans: any verb, any dtype, over any transport.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/backend.hpp>
#include <tutti/transport.hpp>

#include "engine/executor.hpp"
#include "engine/plan_cache.hpp"

namespace tutti {

class Collective;

/// What a backend knows of the group it serves.
struct GroupFacts {
  int rank = 0;
  int size = 1;
  std::uint64_t id = 0;
  std::uint32_t epoch = 0;
  std::vector<int> world_of{};  // rank in the group → rank in the world
  std::vector<int> node_of{};   // node of each rank; empty: all on one

  /// The rank in the group of a rank in the world; −1: it is no member.
  [[nodiscard]] int rank_of(int world_rank) const {
    const auto found = std::find(world_of.begin(), world_of.end(), world_rank);
    return found == world_of.end() ? -1 : static_cast<int>(found - world_of.begin());
  }
};

/// Who can carry executions without plans: for the whole group, or for its ranks on this host.
struct Executors {
  std::shared_ptr<Executor> whole{};
  std::shared_ptr<Executor> local_peers{};
};

class NativeBackend final : public Backend {
 public:
  NativeBackend(GroupFacts facts, Table table, Transport& transport);
  ~NativeBackend() override;

  /// Before the first request.
  void use(Executors executors) { executors_ = std::move(executors); }
  [[nodiscard]] std::string_view name() const override { return executors_.whole ? "shm" : "native"; }
  [[nodiscard]] std::optional<std::string> refuses(const Request& request) const override;
  Task& start(const Request& request) override;
  /// A task for a request whose execution was given to the executor without one.
  Task& adopt(const Request& request, Execution& execution);
  /// How this task's request was given to the executor, if a request like it may be given in the same way.
  [[nodiscard]] std::optional<ExecutionStart> direct(const Task& task) const;

  [[nodiscard]] const GroupFacts& facts() const { return facts_; }
  [[nodiscard]] Transport& transport() { return transport_; }
  [[nodiscard]] PlanCache& plans() { return plans_; }
  [[nodiscard]] const Executors& executors() const { return executors_; }

 private:
  friend class Collective;
  void take_back(Collective& task);
  [[nodiscard]] Collective& idle_task();

  GroupFacts facts_;
  Transport& transport_;
  PlanCache plans_;
  Executors executors_;
  std::vector<std::unique_ptr<Collective>> tasks_;  // all that were ever made
  std::vector<Collective*> idle_;
};

}  // namespace tutti
