// detect_test.cpp: each launcher's environment, as a table of variables and what follows from them.
// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/detect.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <tutti/error.hpp>

namespace tutti::rendezvous {
namespace {

using Variables = Environment::Variables;

std::string point_text(const RendezvousPoint& point) {
  struct Speak {
    std::string operator()(const NoRendezvous&) const { return "none"; }
    std::string operator()(const LauncherStore& p) const { return "store " + p.where.text(); }
    std::string operator()(const FixedAddress& p) const { return "address " + p.where.text(); }
    std::string operator()(const PortWindow& p) const { return "window " + p.host; }
    std::string operator()(const RecordInFile& p) const { return "file " + p.path; }
    std::string operator()(const RecordInPrivateFile& p) const {
      return "private " + p.name.substr(0, p.name.find('-'));
    }
    std::string operator()(const RecordInAgentStore& p) const { return "agent " + p.where.text(); }
    std::string operator()(const RecordInPmi& p) const { return "pmi " + std::to_string(p.fd); }
    std::string operator()(const RecordInPmix&) const { return "pmix"; }
    std::string operator()(const RecordOnBoard&) const { return "board"; }
  };
  return std::visit(Speak{}, point);
}

// rank/size, local rank/size, node rank/count ("-" where the launcher does not tell), meeting point.
std::string summary(const Detected& detected) {
  const auto text = [](std::optional<int> value) { return value ? std::to_string(*value) : "-"; };
  return detected.launcher + ": " + std::to_string(detected.rank) + "/" + std::to_string(detected.size) + ", local " +
         text(detected.local_rank) + "/" + text(detected.local_size) + ", node " + text(detected.node_rank) + "/" +
         text(detected.node_count) + ", " + point_text(detected.meeting);
}

Variables operator+(Variables a, const Variables& b) {
  for (const auto& [name, value] : b) a.insert_or_assign(name, value);
  return a;
}

const Variables by_hand = {{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "1234"}};
const Variables torchrun = by_hand + Variables{{"TORCHELASTIC_RUN_ID", "none"},
                                               {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                               {"TORCHELASTIC_RESTART_COUNT", "0"},
                                               {"LOCAL_RANK", "1"},
                                               {"LOCAL_WORLD_SIZE", "4"},
                                               {"GROUP_RANK", "0"},
                                               {"GROUP_WORLD_SIZE", "1"}};
const Variables open_mpi = {{"OMPI_COMM_WORLD_RANK", "2"},
                            {"OMPI_COMM_WORLD_SIZE", "3"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"},
                            {"PMIX_RANK", "2"},
                            {"PMIX_NAMESPACE", "77"}};
const Variables mpich = {
    {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"PMI_FD", "8"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}};
const Variables slurm = {{"SLURM_PROCID", "3"},
                         {"SLURM_STEP_NUM_TASKS", "5"},
                         {"SLURM_NTASKS", "5"},
                         {"SLURM_STEP_ID", "0"},
                         {"SLURM_JOB_ID", "12"},
                         {"SLURM_LOCALID", "1"},
                         {"SLURM_NODEID", "1"},
                         {"SLURM_STEP_NUM_NODES", "2"},
                         {"SLURM_STEP_NODELIST", "rack[3-4]"},
                         {"SLURM_STEP_TASKS_PER_NODE", "2,3"}};
const Variables slurm_one_node = slurm + Variables{{"SLURM_STEP_NUM_NODES", "1"},
                                                   {"SLURM_NODEID", "0"},
                                                   {"SLURM_STEP_NODELIST", "rack3"},
                                                   {"SLURM_STEP_TASKS_PER_NODE", "5"}};
const Variables tuttirun =
    by_hand + Variables{{"TUTTI_STORE", "10.0.0.9:5000"}, {"TUTTI_JOB", "j"}, {"LOCAL_RANK", "1"},
                        {"LOCAL_WORLD_SIZE", "2"},        {"NODE_RANK", "0"}, {"GROUP_WORLD_SIZE", "2"}};

TEST(Detect, RecognisesEachLauncherByItsVariables) {
  struct Row {
    Variables variables;
    std::string expected;
  };
  const std::vector<Row> rows = {
      {{}, "alone: 0/1, local -/-, node -/-, none"},
      {{{"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}}, "alone: 0/1, local -/-, node -/-, none"},
      {{{"RANK", ""}, {"WORLD_SIZE", ""}}, "alone: 0/1, local -/-, node -/-, none"},
      {by_hand, "by hand: 1/4, local -/-, node -/-, address 10.0.0.1:1234"},
      {by_hand + Variables{{"MASTER_PORT", ""}}, "by hand: 1/4, local -/-, node -/-, address 10.0.0.1:29500"},
      {by_hand + Variables{{"MASTER_ADDR", "::1"}}, "by hand: 1/4, local -/-, node -/-, address [::1]:1234"},
      {by_hand + Variables{{"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "2"}},
       "by hand: 1/4, local 0/2, node -/-, address 10.0.0.1:1234"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "1"}}, "by hand: 0/1, local -/-, node -/-, none"},
      {tuttirun, "tuttirun: 1/4, local 1/2, node 0/2, store 10.0.0.9:5000"},
      {torchrun, "torchrun: 1/4, local 1/4, node 0/1, private torchrun"},
      {torchrun + Variables{{"LOCAL_WORLD_SIZE", "2"}, {"GROUP_WORLD_SIZE", "2"}, {"GROUP_RANK", "1"}},
       "torchrun: 1/4, local 1/2, node 1/2, agent 10.0.0.1:1234"},
      {torchrun +
           Variables{{"LOCAL_WORLD_SIZE", "2"}, {"GROUP_WORLD_SIZE", "2"}, {"TORCHELASTIC_USE_AGENT_STORE", "False"}},
       "torchrun: 1/4, local 1/2, node 0/2, address 10.0.0.1:1234"},
      {open_mpi, "Open MPI: 2/3, local 0/1, node -/-, pmix"},
      {open_mpi + Variables{{"PRTE_LAUNCHED", "1"}}, "Open MPI: 2/3, local 0/1, node -/-, pmix"},
      {open_mpi + Variables{{"PRTE_LAUNCHED", "1"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"}},
       "Open MPI: 2/3, local 0/3, node -/-, private prte"},
      {mpich, "MPICH: 1/2, local 1/2, node -/-, pmi 8"},
      {slurm, "Slurm: 3/5, local 1/3, node 1/2, window rack3"},
      {slurm_one_node, "Slurm: 3/5, local 1/5, node 0/1, private slurm"},
      {slurm + Variables{{"PMIX_RANK", "3"}, {"PMIX_NAMESPACE", "slurm.pmix.12.0"}},
       "Slurm (PMIx): 3/5, local 1/3, node 1/2, pmix"},
      {slurm + Variables{{"PMI_RANK", "3"}, {"PMI_SIZE", "5"}, {"PMI_FD", "9"}},
       "Slurm (PMI): 3/5, local 1/3, node 1/2, pmi 9"},
  };
  for (const Row& row : rows) EXPECT_EQ(summary(detect(Environment(row.variables))), row.expected);
}

TEST(Detect, TheInnerLauncherWins) {
  EXPECT_EQ(detect(Environment(slurm + open_mpi)).launcher, "Open MPI");
  EXPECT_EQ(detect(Environment(slurm + mpich)).launcher, "MPICH");
  EXPECT_EQ(detect(Environment(slurm + torchrun)).launcher, "torchrun");
  EXPECT_EQ(detect(Environment(open_mpi + torchrun + tuttirun)).launcher, "tuttirun");
  EXPECT_EQ(detect(Environment(slurm + by_hand)).launcher, "by hand");
  EXPECT_EQ(detect(Environment(mpich + by_hand)).launcher, "MPICH");
}

TEST(Detect, ABatchScriptThatSlurmStartedRunsAlone) {
  const Variables batch = {{"SLURM_JOB_ID", "5"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_NNODES", "2"}};
  EXPECT_EQ(detect(Environment(batch)).launcher, "alone");
}

TEST(Detect, HalfAnEnvironmentUnderSlurmIsSlurms) {
  EXPECT_EQ(detect(Environment(slurm + Variables{{"WORLD_SIZE", "5"}, {"MASTER_ADDR", "a"}})).launcher, "Slurm");
}

TEST(Detect, PodsOfAnIndexedJobHaveTheirNumberForARank) {
  const Variables pod{{"JOB_COMPLETION_INDEX", "2"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "set-workers-0-0.set"}};
  const Detected detected = detect(Environment(pod));
  EXPECT_EQ(detected.launcher, "Kubernetes");
  EXPECT_EQ(detected.rank, 2);
  EXPECT_EQ(detected.size, 4);
  // Without a number of ranks the index says nothing, and a RANK that was given counts.
  EXPECT_EQ(detect(Environment{{"JOB_COMPLETION_INDEX", "2"}}).launcher, "alone");
  EXPECT_EQ(detect(Environment(pod + Variables{{"RANK", "1"}})).launcher, "by hand");
}

TEST(Detect, ARestartOfTorchrunMeetsElsewhere) {
  const auto place = [](const Variables& variables) {
    return std::get<RecordInPrivateFile>(detect(Environment(variables)).meeting).name;
  };
  EXPECT_EQ(place(torchrun), place(torchrun));
  EXPECT_NE(place(torchrun), place(torchrun + Variables{{"TORCHELASTIC_RESTART_COUNT", "1"}}));
  EXPECT_NE(place(torchrun), place(torchrun + Variables{{"MASTER_PORT", "1235"}}));
}

TEST(Detect, AContradictionNamesTheVariableItsValueAndWhatToSet) {
  struct Row {
    Variables variables;
    std::vector<std::string> words;
  };
  const std::vector<Row> rows = {
      {{{"RANK", "0"}}, {"WORLD_SIZE is not set", "set it"}},
      {{{"WORLD_SIZE", "2"}}, {"RANK is not set"}},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}}, {"MASTER_ADDR is not set", "127.0.0.1"}},
      {by_hand + Variables{{"RANK", "4"}}, {"RANK=4", "WORLD_SIZE=4", "0 to 3"}},
      {by_hand + Variables{{"RANK", "-1"}}, {"RANK=\"-1\""}},
      {by_hand + Variables{{"RANK", "one"}}, {"RANK=\"one\""}},
      {by_hand + Variables{{"RANK", "1.5"}}, {"RANK=\"1.5\""}},
      {by_hand + Variables{{"RANK", "99999999999999999999"}}, {"RANK=\"99999999999999999999\""}},
      {by_hand + Variables{{"WORLD_SIZE", "0"}}, {"WORLD_SIZE=\"0\""}},
      {by_hand + Variables{{"MASTER_PORT", "70000"}}, {"MASTER_PORT=\"70000\""}},
      {torchrun + Variables{{"RANK", "7"}}, {"RANK=7", "WORLD_SIZE=4"}},
      {open_mpi + Variables{{"OMPI_COMM_WORLD_RANK", "3"}}, {"OMPI_COMM_WORLD_RANK=3"}},
      {open_mpi + Variables{{"OMPI_COMM_WORLD_RANK", ""}}, {"Open MPI", "OMPI_COMM_WORLD_RANK is not set"}},
      {mpich + Variables{{"PMI_RANK", "x"}}, {"PMI_RANK=\"x\""}},
      {slurm + Variables{{"SLURM_PROCID", "5"}}, {"SLURM_PROCID=5"}},
      {slurm + Variables{{"SLURM_STEP_NODELIST", "a[1-"}}, {"a[1-"}},
      {tuttirun + Variables{{"TUTTI_STORE", "nowhere"}}, {"nowhere"}},
  };
  for (const Row& row : rows) {
    try {
      ADD_FAILURE() << summary(detect(Environment(row.variables)));
    } catch (const InvalidArgument& error) {
      for (const std::string& word : row.words) EXPECT_THAT(error.what(), testing::HasSubstr(word));
    }
  }
}

TEST(Detect, TheListEndsWithADetectorThatAlwaysAnswers) {
  EXPECT_TRUE(all_detectors().back().detect(Environment()));
  for (const Detector& detector : all_detectors().first(all_detectors().size() - 1)) {
    EXPECT_FALSE(detector.detect(Environment())) << detector.launcher;
  }
}

}  // namespace
}  // namespace tutti::rendezvous
