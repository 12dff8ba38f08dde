// allocation_test.cpp: what schedulers say about the hosts of a job.
// SPDX-License-Identifier: Apache-2.0
#include "launch/allocation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "launch/remote_shell.hpp"

namespace tutti::launch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const Environment slurm{
    {"SLURM_JOB_ID", "7"}, {"SLURM_JOB_NODELIST", "n[1-2],other"}, {"SLURM_TASKS_PER_NODE", "4(x2),1"}};

TEST(Allocation, OfSlurmListsTheNodesAndSrunReachesThem) {
  RunOptions options;
  EXPECT_EQ(apply_allocation(options, slurm), "Slurm job 7: 3 nodes");
  EXPECT_THAT(options.hosts, ElementsAre(Host{"n1", 4}, Host{"n2", 4}, Host{"other", 1}));
  const auto command = remote_command(split_shell_words("--ssh", options.shell), "n2", "/opt/tuttirun");
  EXPECT_EQ(command.front(), "srun");
  EXPECT_THAT(command, testing::Contains("--nodelist=n2"));
  EXPECT_THAT(command.back(), HasSubstr("--agent"));
}

TEST(Allocation, OfSlurmMayBeReachedByAnotherShellWithOtherNumbersOfRanks) {
  RunOptions options{.ranks = 2, .shell = "ssh -p 1", .has_shell = true};
  EXPECT_NE(apply_allocation(options, slurm), "");
  EXPECT_EQ(options.shell, "ssh -p 1");
  EXPECT_THAT(options.hosts, ElementsAre(Host{"n1", 2}, Host{"n2", 2}, Host{"other", 2}));
}

TEST(Allocation, OfOneNodeAndWithinAStepIsThisHost) {
  RunOptions options;
  EXPECT_EQ(apply_allocation(options, {{"SLURM_JOB_ID", "7"}, {"SLURM_JOB_NODELIST", "n1"}}), "");
  Environment step = slurm;
  step.set("SLURM_STEP_ID", "0");
  step.set("SLURM_STEP_NUM_TASKS", "9");
  EXPECT_EQ(apply_allocation(options, step), "");
  EXPECT_TRUE(options.hosts.empty());
}

TEST(Allocation, OfSlurmThatCannotBeReadIsAnErrorThatSaysWhatToTry) {
  RunOptions options;
  try {
    apply_allocation(options, {{"SLURM_JOB_ID", "7"}, {"SLURM_JOB_NODELIST", "n[1-"}});
    FAIL() << "it was taken";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("list the hosts with -H"));
  }
}

TEST(Allocation, OfAnMpiJobIsItsHostfile) {
  const std::string path = testing::TempDir() + "hostfile-" + std::to_string(getpid());
  std::ofstream(path) << "worker-0.job slots=2\nworker-1.job slots=2\n";
  RunOptions options;
  EXPECT_THAT(apply_allocation(options, {{"OMPI_MCA_orte_default_hostfile", path},
                                         {"OMPI_MCA_plm_rsh_agent", "/etc/mpi/kubexec.sh"}}),
              HasSubstr("2 hosts"));
  EXPECT_THAT(options.hosts, ElementsAre(Host{"worker-0.job", 2}, Host{"worker-1.job", 2}));
  EXPECT_EQ(options.shell, "/etc/mpi/kubexec.sh");
  std::remove(path.c_str());
}

TEST(Allocation, OfPyTorchJobAndOfIndexedJobsIsANodesNumber) {
  RunOptions torch;
  EXPECT_NE(apply_allocation(torch, {{"PET_NNODES", "3"},
                                     {"PET_NODE_RANK", "2"},
                                     {"PET_NPROC_PER_NODE", "4"},
                                     {"MASTER_ADDR", "job-master-0"},
                                     {"MASTER_PORT", "23456"}}),
            "");
  EXPECT_EQ(torch.nodes, 3);
  EXPECT_EQ(torch.node_rank, 2);
  EXPECT_EQ(torch.ranks, 4);
  EXPECT_EQ(torch.master_address, "job-master-0");
  EXPECT_EQ(torch.master_port, 23456);
  RunOptions indexed;
  EXPECT_NE(apply_allocation(indexed, {{"NNODES", "2"},
                                       {"JOB_COMPLETION_INDEX", "1"},
                                       {"MASTER_ADDR", "set-workers-0-0.set"},
                                       {"MASTER_PORT", "29500"}}),
            "");
  EXPECT_EQ(indexed.node_rank, 1);
  EXPECT_EQ(indexed.ranks, 1);
}

TEST(Allocation, OfPodsWithAMistakeNamesTheVariable) {
  const auto message_of = [](const Environment& environment) -> std::string {
    RunOptions options;
    try {
      return "taken: " + apply_allocation(options, environment);
    } catch (const UsageError& error) {
      return error.what();
    }
  };
  EXPECT_THAT(message_of({{"NNODES", "2"}, {"NODE_RANK", "0"}}), HasSubstr("MASTER_ADDR or MASTER_PORT is not set"));
  EXPECT_THAT(message_of({{"NNODES", "2:4"}, {"NODE_RANK", "0"}}), HasSubstr("NNODES=2:4 is no number"));
  EXPECT_THAT(message_of({{"NNODES", "2"}, {"NODE_RANK", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}}),
              HasSubstr("NODE_RANK=2 is no number from 0 to 1"));
  EXPECT_EQ(message_of({{"NNODES", "1"}, {"NODE_RANK", "0"}}), "taken: ");
  EXPECT_EQ(message_of({{"JOB_COMPLETION_INDEX", "3"}}), "taken: ");
}

}  // namespace
}  // namespace tutti::launch
