// launcher_news_test.cpp: lines from a launcher's pipe, whole and in pieces.
// SPDX-License-Identifier: Apache-2.0
#include "group/launcher_news.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <vector>

namespace tutti {
namespace {

class Told {
 public:
  void add(int rank, std::string_view how) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(fmt::format("{}: {}", rank, how));
    changed_.notify_all();
  }
  std::vector<std::string> wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(60), [&] { return lines_.size() >= count; });
    return lines_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> lines_;
};

TEST(LauncherNews, ReadsALinePerProcessAlsoInPieces) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const UniqueFd reader(ends[0]), writer(ends[1]);
  Told told;
  LauncherPipe own =
      LauncherNews::open_pipe(Environment{{"TUTTI_LAUNCHER_FD", std::to_string(ends[0])}, {"TUTTI_JOB", "job"}});
  ASSERT_TRUE(own);
  EXPECT_NE(fcntl(ends[0], F_GETFD) & FD_CLOEXEC, 0) << "programs of this rank are no ranks";
  const LauncherNews news(std::move(own), [&](int rank, std::string_view how) { told.add(rank, how); });
  const auto say = [&](std::string_view text) {
    ASSERT_EQ(write(writer.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  };
  say("3 job it was killed\nnonsense\nnonsense of two words\n5 earlier it was killed\n1");
  EXPECT_THAT(told.wait_for(1), testing::ElementsAre("3: it was killed"));
  say("7 job it left\n");
  EXPECT_THAT(told.wait_for(2), testing::ElementsAre("3: it was killed", "17: it left"));
}

TEST(LauncherNews, WithoutAPipeThereIsNoLauncher) {
  EXPECT_FALSE(LauncherNews::open_pipe({}));
  EXPECT_FALSE(LauncherNews::open_pipe(Environment{{"TUTTI_LAUNCHER_FD", "999999"}}));
  const UniqueFd file(open("/dev/null", O_RDONLY));
  EXPECT_FALSE(LauncherNews::open_pipe(Environment{{"TUTTI_LAUNCHER_FD", std::to_string(file.get())}}));
}

TEST(LauncherNews, EndsWhileTheLauncherStays) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const UniqueFd reader(ends[0]), writer(ends[1]);
  const LauncherNews news(LauncherNews::open_pipe(Environment{{"TUTTI_LAUNCHER_FD", std::to_string(ends[0])}}),
                          [](int, std::string_view) {});
}

}  // namespace
}  // namespace tutti
