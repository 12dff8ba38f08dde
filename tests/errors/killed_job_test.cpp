// killed_job_test.cpp: whole jobs are killed at random moments; nothing of their shared memory stays behind.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "case_grid.hpp"
#include "ranks_as_processes.hpp"

namespace tutti::contract {
namespace {

std::set<std::string> names_in(const std::filesystem::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}

/// Bytes of memory files and the like that somebody still holds, over the whole machine.
std::int64_t shared_bytes() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("Shmem:")) return std::stoll(line.substr(6)) * 1024;
  }
  return 0;
}

// Each rank holds 8 MiB: leaving them behind only now and then would show.
TEST(KilledJobs, LeaveNoSharedMemoryBehind) {
  const int rounds = is_soak() ? 200 : 12;
  constexpr int size = 3;
  constexpr std::int64_t held_bytes = 8 << 20;
  const auto names_before = names_in("/dev/shm");
  const std::int64_t bytes_before = shared_bytes();
  std::mt19937 random(static_cast<unsigned>(seed_of_run()));
  for (int round = 0; round < rounds; ++round) {
    RankProcesses ranks(size);
    ranks.start([](Group& world) -> std::string {
      Buffer<float> shared = world.empty<float>(held_bytes / sizeof(float));
      for (;;) world.all_reduce(std::span(shared).first(100'000), {.op = Op::max});
    });
    usleep(static_cast<useconds_t>(random() %
                                   60'000));  // not to wait for anything: a random moment, also in the middle of init
    for (int rank = 0; rank < size; ++rank) ranks.kill(rank);
  }
  for (const std::string& name : names_in("/dev/shm")) {
    EXPECT_TRUE(names_before.contains(name) || name.find("tutti") == std::string::npos) << name << " was left";
  }
  // Other programs come and go: what is looked for is an amount that only these jobs can have left.
  EXPECT_LT(shared_bytes() - bytes_before, std::int64_t{rounds} * size * held_bytes / 4);
}

}  // namespace
}  // namespace tutti::contract
