// sim_rank.hpp: one rank of a scenario: makes its groups and its calls, and writes down what came of them.
// SPDX-License-Identifier: Apache-2.0
//
// Nothing blocks: calls are started, and looked after when the cluster gives the rank the processor.
#pragma once

#include <list>
#include <memory>
#include <vector>

#include "breakage.hpp"
#include "group/core.hpp"
#include "group/runtime.hpp"
#include "history.hpp"
#include "verify/simulated_cluster.hpp"

namespace tutti::sim {

class SimRank {
 public:
  struct Surroundings {
    const Scenario& scenario;
    messages::SimulatedCluster& cluster;
    History& history;
    Breakage breakage = Breakage::none;
  };
  SimRank(const Surroundings& around, int rank);
  SimRank(const SimRank&) = delete;
  SimRank& operator=(const SimRank&) = delete;

  // What the rank does when it has the processor; true if anything moved.
  bool step();
  // Nothing is left to do or to wait for.
  [[nodiscard]] bool finished() const { return finished_; }

 private:
  struct UnderWay {
    std::shared_ptr<Operation> operation;
    Record* record;
  };
  // The rank's way through one group's script.
  struct Course {
    std::size_t group = 0;
    const GroupScript* script = nullptr;
    std::shared_ptr<const control::Creation> creation{};  // while it is being made
    CreationRecord* creation_record = nullptr;
    std::shared_ptr<GroupCore> core{};
    std::size_t next = 0;
    Duration next_at{};
    bool stopped = false;
    std::list<UnderWay> under_way{};
  };

  void join();
  void begin(Course& course);
  bool take_group(Course& course);
  void enter_group(Course& course, std::uint64_t id);
  bool collect(Course& course);
  bool make_calls(Course& course);
  bool deviate(Course& course);
  void make_call(Course& course);
  std::shared_ptr<Operation> start(Course& course, Record& record);
  void note_end(Course& course, Record& record, const std::exception_ptr& error);
  void leave();
  [[nodiscard]] const Deviation* deviation(const Course& course, Deviation::Kind kind) const;
  [[nodiscard]] bool is_done(const Course& course) const;
  [[nodiscard]] Duration now() const { return around_.cluster.elapsed(); }

  Surroundings around_;
  int rank_;
  std::shared_ptr<Runtime> runtime_;
  std::list<Course> courses_;
  int ended_calls_ = 0;
  bool left_ = false;
  bool finished_ = false;
};

}  // namespace tutti::sim
