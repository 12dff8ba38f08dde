// local_job.cpp: from the options to ranks on this host.
// SPDX-License-Identifier: Apache-2.0
#include "launch/local_job.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "launch/attempt.hpp"
#include "launch/cores.hpp"
#include "launch/dry_run.hpp"
#include "launch/elastic_crew.hpp"
#include "launch/job.hpp"
#include "launch/local_crew.hpp"
#include "launch/metrics_server.hpp"
#include "launch/mpirun.hpp"
#include "launch/program.hpp"
#include "launch/rank_environment.hpp"

namespace tutti::launch {
namespace {

class LocalStarts {
 public:
  explicit LocalStarts(const LocalJob& job)
      : job_(job), program_(find_program(job.options, job.environment)), placement_(place(job.options)) {
    if (job.options.binding == Binding::core) processors_ = split_cores(placement_.ranks_here);
  }

  [[nodiscard]] const Program& program() const { return program_; }

  int dry_run() {
    Meeting meeting = begin_meeting(0);
    meeting.describe_in(placement_);
    if (placement_.nodes == 1) placement_.store = "127.0.0.1:(a free port)";
    const Variables common = common_variables(placement_, job_.options, job_.environment);
    fmt::print("{}", describe_start(program_, placement_, common, processors_));
    return 0;
  }

  int run() {
    signals_ = take_over_signals();  // before there are threads
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    deadline_ = deadline_of(job_.options);
    if (job_.options.ranks_min) return run_elastic();
    return run_attempts(job_.name, job_.options.restarts, [this](int restart) { return run_once(restart); });
  }

 private:
  static Placement place(const RunOptions& options) {
    const int cores = usable_processors();
    Placement placement{.ranks_here = options.ranks > 0 ? options.ranks : cores,
                        .nodes = options.nodes,
                        .node_rank = options.node_rank,
                        .master_address = options.master_address,
                        .master_port = options.master_port};
    placement.first_rank = placement.node_rank * placement.ranks_here;
    placement.world_size = placement.nodes * placement.ranks_here;
    placement.threads = std::max(1, cores / placement.ranks_here);
    return placement;
  }

  [[nodiscard]] Meeting begin_meeting(int restart) const {
    Meeting meeting{.secret = choose_secret(job_.options, job_.environment, restart)};
    if (job_.options.master_port == 0) {
      meeting.master_port = free_master_port();
    } else if (placement_.node_rank == 0) {
      meeting.master_port = given_master_port(job_.options.master_port);
    }
    if (placement_.nodes > 1) meeting.job = common_job_id(placement_);
    return meeting;
  }

  // The environments are to be added.
  [[nodiscard]] LocalPlan plan_of_ranks() const {
    return {.program = program_,
            .ranks = placement_.ranks_here,
            .first_rank = placement_.first_rank,
            .id = placement_.nodes > 1 ? fmt::format("{}-{}", placement_.job, placement_.node_rank) : placement_.job,
            .processors = processors_,
            .input = job_.input,
            .grace = job_.options.grace,
            .signals = signals_,
            .descriptors = descriptors_,
            .title = job_.title};
  }

  [[nodiscard]] JobPlan plan_of_job(int restart) const {
    return {.name = std::string(job_.name),
            .options = job_.options,
            .ranks = placement_.ranks_here,
            .first_rank = placement_.first_rank,
            .world_size = placement_.world_size,
            .signals = signals_,
            .deadline = deadline_,
            .continues_logs = restart > 0};
  }

  JobEnd run_once(int restart) {
    Meeting meeting = begin_meeting(restart);
    if (placement_.nodes == 1) serve_store(meeting, encryption_, job_.name);
    meeting.describe_in(placement_);
    placement_.restart = restart;
    if (restart == 0) descriptors_ = make_room_for_pipes(placement_.ranks_here);
    LocalPlan plan = plan_of_ranks();
    plan.common_environment =
        common_block(job_.environment, common_variables(placement_, job_.options, job_.environment));
    for (int rank = 0; rank < plan.ranks; ++rank)
      plan.own_environment.push_back(to_block(own_variables(placement_, rank)));
    LocalCrew crew(std::move(plan));
    std::optional<MetricsServer> metrics;
    if (job_.options.metrics_port) {
      metrics.emplace(*job_.options.metrics_port, [&crew] { return crew.records().metrics(); });
      fmt::print(stderr, "{}: metrics at http://127.0.0.1:{}/metrics\n", job_.name, metrics->port());
    }
    return run_job(plan_of_job(restart), crew);
  }

  int run_elastic() {
    descriptors_ = make_room_for_pipes(2 * placement_.ranks_here);
    ElasticCrew crew({.name = job_.name,
                      .options = job_.options,
                      .environment = job_.environment,
                      .ranks = plan_of_ranks(),
                      .placement = placement_,
                      .begin_meeting = [this](int round) {
                        Meeting meeting = begin_meeting(round);
                        serve_store(meeting, encryption_, job_.name);
                        return meeting;
                      }});
    return run_job(plan_of_job(0), crew).status;
  }

  const LocalJob& job_;
  const wire::Encryption encryption_ = encryption_of_ranks(job_.options, job_.environment);
  Program program_;
  Placement placement_;
  std::vector<cpu_set_t> processors_;
  InheritedSignals signals_;
  rlimit descriptors_{};
  std::optional<TimePoint> deadline_;
};

}  // namespace

int run_here(const LocalJob& job) {
  const bool keeps_no_crew = job.options.backend == "mpi" || job.options.ranks_min;
  if (keeps_no_crew && job.options.metrics_port)
    throw UsageError(
        "--metrics serves the ranks that tuttirun starts once: it goes neither with -B mpi nor with --elastic");
  LocalStarts starts(job);
  if (job.options.backend == "mpi") return start_by_mpirun(job.options, starts.program(), job.environment);
  return job.options.is_dry_run ? starts.dry_run() : starts.run();
}

}  // namespace tutti::launch
