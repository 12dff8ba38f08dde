// options_test.cpp: tuttirun's words, torchrun's words, and the mistakes people make.
// SPDX-License-Identifier: Apache-2.0
#include "launch/options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace tutti::launch {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

Parsed parse(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return parse_options("tuttirun", words);
}

std::string complaint(const std::string& line) {
  try {
    parse(line);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "(accepted)";
}

TEST(RunOptions, EverythingBehindTheProgramIsTheProgramsOwn) {
  const RunOptions options = parse("-n 4 ./program -n 7 --quiet -- x").options;
  EXPECT_EQ(options.ranks, 4);
  EXPECT_EQ(options.program, "./program");
  EXPECT_THAT(options.arguments, ElementsAre("-n", "7", "--quiet", "--", "x"));
  EXPECT_FALSE(options.is_quiet);
}

TEST(RunOptions, TwoDashesEndTheOptions) {
  const RunOptions options = parse("-n 2 -- -strange-name -q").options;
  EXPECT_EQ(options.program, "-strange-name");
  EXPECT_THAT(options.arguments, ElementsAre("-q"));
}

TEST(RunOptions, UnderstandsTorchrunsWordsWithDashesAndUnderscores) {
  for (const char* line :
       {"--standalone --nnodes=1 --nproc_per_node=4 train.py", "--nnodes 1 --nproc-per-node 4 train.py",
        "--nproc_per_node 4 --master_addr 127.0.0.1 --node_rank 0 train.py"}) {
    const RunOptions options = parse(line).options;
    EXPECT_EQ(options.ranks, 4) << line;
    EXPECT_EQ(options.nodes, 1) << line;
    EXPECT_EQ(options.program, "train.py") << line;
  }
  const RunOptions several = parse("--nnodes 2 --node-rank 1 --master-addr a --master-port 7 -n 3 x").options;
  EXPECT_EQ(several.nodes, 2);
  EXPECT_EQ(several.node_rank, 1);
  EXPECT_EQ(several.master_port, 7);
}

TEST(RunOptions, ValuesMayStickToTheirOptions) {
  const RunOptions options = parse("-n3 --grace=250ms -xA=1 -x B= --env=C=x=y --timeout 2m -B native x").options;
  EXPECT_EQ(options.ranks, 3);
  EXPECT_EQ(options.grace, std::chrono::milliseconds(250));
  EXPECT_EQ(options.timeout, std::chrono::minutes(2));
  EXPECT_EQ(options.backend, "native");
  EXPECT_THAT(options.variables,
              ElementsAre(testing::Pair("A", "1"), testing::Pair("B", ""), testing::Pair("C", "x=y")));
}

TEST(RunOptions, AModuleIsNamedAfterM) {
  const RunOptions options = parse("-m -n 2 package.train --lr 1").options;
  EXPECT_TRUE(options.is_module);
  EXPECT_EQ(options.program, "package.train");
}

TEST(RunOptions, TheLastOfRepeatedOptionsCounts) { EXPECT_EQ(parse("-n 2 -n 5 x").options.ranks, 5); }

TEST(RunOptions, HelpShowsExamplesAndEveryOption) {
  const std::string help = parse("--help").text;
  for (const char* word : {"Examples", "tuttirun -n 4 ./program", "--nproc-per-node", "--bind", "--log-dir",
                           "--timeout", "--grace", "PROGRAM [ITS OWN ARGUMENTS]"})
    EXPECT_THAT(help, HasSubstr(word));
  EXPECT_THAT(parse("--version").text, HasSubstr("tuttirun "));
}

TEST(RunOptions, SuggestsTheNearestOption) {
  EXPECT_EQ(complaint("--qiet x"), "there is no option --qiet; did you mean --quiet?");
  EXPECT_EQ(complaint("--nproc_per_nod 4 x"), "there is no option --nproc-per-nod; did you mean --nproc-per-node?");
  EXPECT_EQ(complaint("--frobnicate x"), "there is no option --frobnicate");
  EXPECT_THAT(complaint("-qn x"), HasSubstr("there is no option -qn"));
}

TEST(RunOptions, SaysWhatIsWrongWithAValue) {
  EXPECT_THAT(complaint("-n 0 x"), HasSubstr("-n takes a number from 1"));
  EXPECT_THAT(complaint("-n four x"), HasSubstr("not \"four\""));
  EXPECT_THAT(complaint("-n -3 x"), HasSubstr("not \"-3\""));
  EXPECT_THAT(complaint("-n gpu x"), HasSubstr("does not count GPUs"));
  EXPECT_THAT(complaint("--timeout soon x"), HasSubstr("--timeout takes a time"));
  EXPECT_THAT(complaint("--grace 0 x"), HasSubstr("--grace takes a time"));
  EXPECT_THAT(complaint("--bind socket x"), HasSubstr("core or none"));
  EXPECT_THAT(complaint("--master-port 70000 x"), HasSubstr("0 to 65535"));
  EXPECT_THAT(complaint("--quiet=yes x"), HasSubstr("takes no value"));
  EXPECT_THAT(complaint("-x RANK=3 x"), HasSubstr("sets RANK itself"));
  EXPECT_THAT(complaint("-x =3 x"), HasSubstr("NAME=VALUE"));
  EXPECT_THAT(complaint("-x TUTTI_NO_SUCH_VARIABLE x"), HasSubstr("is not set here"));
  EXPECT_THAT(complaint("x --timeout"), "(accepted)");
  EXPECT_THAT(complaint("--timeout"), HasSubstr("--timeout needs a value"));
}

TEST(RunOptions, ABackendThatDoesNotExistIsRefusedBeforeRanksStart) {
  EXPECT_THAT(complaint("-B torch x"), AllOf(HasSubstr("auto, native, shm"), HasSubstr("as they are")));
  EXPECT_THAT(complaint("--backend=nativ x"), HasSubstr("did you mean native?"));
  EXPECT_THAT(complaint("-B shm x"), "(accepted)");
}

TEST(RunOptions, RestartsAndElasticSayWhatTheyCannotBeTogetherWith) {
  EXPECT_EQ(parse("-n 4 --restarts 3 x").options.restarts, 3);
  const RunOptions elastic = parse("--elastic 2:4 x").options;
  EXPECT_EQ(elastic.ranks, 4);
  EXPECT_EQ(elastic.ranks_min, 2);
  EXPECT_EQ(elastic.restarts, 3);
  EXPECT_EQ(parse("--elastic 2 -n 3 --restarts 0 x").options.restarts, 0);
  EXPECT_THAT(complaint("--elastic 4:2 x"), HasSubstr("the fewest ranks and the most"));
  EXPECT_THAT(complaint("--elastic 2:4 -n 3 x"), HasSubstr("give -n or MAX"));
  EXPECT_THAT(complaint("--elastic 4 -n 3 x"), HasSubstr("starts fewer ranks"));
  EXPECT_THAT(complaint("--elastic 4 x"), HasSubstr("give the number of ranks"));
  EXPECT_THAT(complaint("-n 2 --restarts 1 --keep-going x"), HasSubstr("contradict each other"));
  EXPECT_THAT(complaint("--nnodes 2 --node-rank 0 --master-addr a --master-port 1 -n 1 --restarts 1 x"),
              HasSubstr("start all nodes from one with -H"));
  EXPECT_THAT(complaint("-n 2 -B mpi --restarts 1 x"), HasSubstr("mpirun, which starts a job once"));
  EXPECT_THAT(complaint("-x TUTTI_RESTART=1 x"), HasSubstr("sets TUTTI_RESTART itself"));
}

TEST(RunOptions, AProgramIsNeeded) {
  EXPECT_THAT(complaint("-n 4"), HasSubstr("no program"));
  EXPECT_THAT(complaint(""), HasSubstr("no program"));
  EXPECT_THAT(complaint("-n 4 --"), HasSubstr("no program"));
}

TEST(RunOptions, RefusesWhatItWouldHaveToIgnore) {
  EXPECT_THAT(complaint("--rdzv_backend c10d x"), HasSubstr("torchrun's --rdzv-backend has no meaning here"));
  EXPECT_THAT(complaint("--max-restarts=3 x"), HasSubstr("use --restarts"));
  EXPECT_THAT(complaint("--nnodes 1:4 x"), HasSubstr("range of nodes"));
  EXPECT_THAT(complaint("--nnodes 2 x"), HasSubstr("--node-rank, --master-addr and --master-port"));
  EXPECT_THAT(complaint("--nnodes 2 --standalone x"), HasSubstr("--standalone means one node"));
  EXPECT_THAT(complaint("--node-rank 1 x"), HasSubstr("needs --nnodes"));
  EXPECT_THAT(complaint("--nnodes 2 --node-rank 2 --master-addr a --master-port 1 -n 1 x"), HasSubstr("count from 0"));
  EXPECT_THAT(complaint("--tee x"), HasSubstr("give --log-dir"));
}

}  // namespace
}  // namespace tutti::launch
