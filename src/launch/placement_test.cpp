// placement_test.cpp: what ranks are told and where they run.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/cores.hpp"
#include "launch/dry_run.hpp"
#include "launch/master_port.hpp"
#include "launch/rank_environment.hpp"

namespace tutti::launch {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;

const Placement two_of_two = {.ranks_here = 2,
                              .first_rank = 2,
                              .world_size = 4,
                              .nodes = 2,
                              .node_rank = 1,
                              .threads = 3,
                              .master_port = 5,
                              .secret = "s"};

TEST(RankEnvironment, TellsEveryRankItsPlace) {
  const Variables common = common_variables(two_of_two, {.backend = "native"}, {});
  EXPECT_THAT(common, Contains(Pair("WORLD_SIZE", "4")));
  EXPECT_THAT(common, Contains(Pair("LOCAL_WORLD_SIZE", "2")));
  EXPECT_THAT(common, Contains(Pair("GROUP_RANK", "1")));
  EXPECT_THAT(common, Contains(Pair("MASTER_PORT", "5")));
  EXPECT_THAT(common, Contains(Pair("TUTTI_BACKEND", "native")));
  EXPECT_THAT(common, Not(Contains(Pair("TUTTI_STORE", testing::_)))) << "on several nodes nobody serves one";
  EXPECT_THAT(own_variables(two_of_two, 1), testing::ElementsAre(Pair("RANK", "3"), Pair("LOCAL_RANK", "1")));
}

TEST(RankEnvironment, SetsThreadsUnlessThePersonDid) {
  const Variables common = common_variables(two_of_two, {}, Environment{{"OMP_NUM_THREADS", "7"}});
  EXPECT_THAT(common, Not(Contains(Pair("OMP_NUM_THREADS", testing::_))));
  EXPECT_THAT(common, Contains(Pair("NPROC", "3")));
  EXPECT_THAT(common, Contains(Pair("TF_NUM_INTRAOP_THREADS", "3")));
}

TEST(RankEnvironment, WhatWasAskedForReplacesWhatWouldBeSet) {
  const Variables common = common_variables(two_of_two, {.variables = {{"NPROC", "9"}, {"MY", "own"}}}, {});
  EXPECT_EQ(std::count_if(common.begin(), common.end(), [](const auto& one) { return one.first == "NPROC"; }), 1);
  EXPECT_THAT(common, Contains(Pair("NPROC", "9")));
  EXPECT_THAT(common, Contains(Pair("MY", "own")));
}

TEST(RankEnvironment, LeavesOutWhatBelongsToAnotherLaunchersRank) {
  const Environment environment{{"HOME", "/h"},          {"RANK", "5"},          {"OMPI_COMM_WORLD_SIZE", "9"},
                                {"PMI_FD", "3"},         {"PMIX_RANK", "1"},     {"A", "old"},
                                {"OMPI_MCA_btl", "tcp"}, {"TUTTI_STORE", "x:1"}, {"PMIX_MCA_gds", "hash"}};
  EXPECT_THAT(common_block(environment, {{"A", "new"}}),
              testing::UnorderedElementsAre("HOME=/h", "OMPI_MCA_btl=tcp", "PMIX_MCA_gds=hash", "A=new"));
}

std::vector<cpu_set_t> machine(int cores, int threads) {
  std::vector<cpu_set_t> result;
  for (int core = 0; core < cores; ++core) {
    cpu_set_t processors;
    CPU_ZERO(&processors);
    for (int thread = 0; thread < threads; ++thread) CPU_SET(core + thread * cores, &processors);
    result.push_back(processors);
  }
  return result;
}

std::vector<std::string> dealt(int cores, int threads, int ranks) {
  std::vector<std::string> texts;
  for (const cpu_set_t& share : deal_cores(machine(cores, threads), ranks)) texts.push_back(describe(share));
  return texts;
}

TEST(Cores, AreDealtInNeighbourhoodsWithAllTheirThreads) {
  EXPECT_THAT(dealt(4, 1, 2), testing::ElementsAre("0-1", "2-3"));
  EXPECT_THAT(dealt(4, 2, 2), testing::ElementsAre("0-1,4-5", "2-3,6-7"));
  EXPECT_THAT(dealt(5, 1, 2), testing::ElementsAre("0-1", "2-4"));
  EXPECT_THAT(dealt(3, 1, 3), testing::ElementsAre("0", "1", "2"));
}

TEST(Cores, AreNotSharedWhenRanksAreBound) {
  EXPECT_THROW(dealt(2, 2, 3), UsageError);
  EXPECT_GE(usable_processors(), 1);
}

TEST(MasterPort, IsNotGivenTwice) {
  const MasterPort first = free_master_port();
  EXPECT_GE(first.port, 20000);
  EXPECT_LT(first.port, 32768) << "the kernel hands those out by itself";
  EXPECT_THROW(given_master_port(first.port), UsageError);
}

TEST(DryRun, QuotesAsAShellWould) {
  EXPECT_EQ(quoted("plain-1.0/x"), "plain-1.0/x");
  EXPECT_EQ(quoted("two words"), "'two words'");
  EXPECT_EQ(quoted("it's"), "'it'\\''s'");
  EXPECT_EQ(quoted(""), "''");
}

TEST(DryRun, KeepsTheSecret) {
  const std::string text =
      describe_start({.path = "/bin/x", .words = {"x", "a b"}}, two_of_two, {{"TUTTI_SECRET", "hush"}}, {});
  EXPECT_THAT(text, HasSubstr("program: /bin/x 'a b'"));
  EXPECT_THAT(text, HasSubstr("RANK=3 LOCAL_RANK=1"));
  EXPECT_THAT(text, Not(HasSubstr("hush")));
}

}  // namespace
}  // namespace tutti::launch
