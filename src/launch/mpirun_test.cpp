// mpirun_test.cpp: the command that starts ranks by an MPI's launcher.
// SPDX-License-Identifier: Apache-2.0
#include "launch/mpirun.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::launch {
namespace {

using testing::ElementsAre;

const Program python{.path = "/usr/bin/python3", .words = {"python3", "train.py", "--lr", "1"}};

TEST(Mpirun, GetsTheRanksAndTheProgramWithItsWords) {
  EXPECT_THAT(
      mpirun_command({.path = "/usr/bin/mpirun", .is_open_mpi = true}, {.ranks = 4}, python),
      ElementsAre("/usr/bin/mpirun", "--oversubscribe", "-n", "4", "/usr/bin/python3", "train.py", "--lr", "1"));
  EXPECT_THAT(mpirun_command({.path = "/usr/bin/mpirun"}, {.ranks = 2}, python),
              ElementsAre("/usr/bin/mpirun", "-n", "2", "/usr/bin/python3", "train.py", "--lr", "1"));
}

TEST(Mpirun, OptionsThatItDoesNotHaveAreRefused) {
  const MpiLauncher launcher{.path = "/usr/bin/mpirun"};
  EXPECT_THROW(mpirun_command(launcher, {.nodes = 2}, python), UsageError);
  EXPECT_THROW(mpirun_command(launcher, {.log_folder = "logs"}, python), UsageError);
  EXPECT_THROW(mpirun_command(launcher, {.is_quiet = true}, python), UsageError);
  EXPECT_THROW(mpirun_command(launcher, {.timeout = std::chrono::seconds(1)}, python), UsageError);
}

TEST(Mpirun, IsNamedWhereThereIsNone) {
  Environment environment;
  environment.set("PATH", "/nowhere");
  try {
    start_by_mpirun({.ranks = 2}, python, environment);
    ADD_FAILURE() << "no error";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("no mpirun was found in PATH"));
  }
}

}  // namespace
}  // namespace tutti::launch
