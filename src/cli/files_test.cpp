// files_test.cpp: /proc, /sys and cgroups of machines that are made up.
// SPDX-License-Identifier: Apache-2.0
#include "cli/files.hpp"

#include <fstream>

#include <gtest/gtest.h>

#include "cli/probes.hpp"

namespace tutti::cli {
namespace {

class MadeUpMachine : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/tutti-machine-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }

  std::filesystem::path root_;
};

TEST(Field, IsFoundByItsWholeName) {
  const std::string text = "MemTotalX:  1 kB\nMemTotal:   49152 kB\nSwap: none\n";
  EXPECT_EQ(field(text, "MemTotal"), 49152);
  EXPECT_EQ(field(text, "MemFree"), std::nullopt);
  EXPECT_EQ(field(text, "Swap"), std::nullopt);
}

TEST_F(MadeUpMachine, WithoutCgroupsHasNoLimits) {
  const CgroupLimits limits = read_cgroup_limits(root_);
  EXPECT_FALSE(limits.memory_limit || limits.memory_used || limits.cpu_quota);
}

TEST_F(MadeUpMachine, TheTightestGroupAboveCounts) {
  write("proc/self/cgroup", "0::/job/step\n");
  write("sys/fs/cgroup/job/step/memory.max", "max\n");
  write("sys/fs/cgroup/job/step/cpu.max", "max 100000\n");
  write("sys/fs/cgroup/job/memory.max", "1073741824\n");
  write("sys/fs/cgroup/job/memory.current", "4096\n");
  write("sys/fs/cgroup/job/cpu.max", "150000 100000\n");
  const CgroupLimits limits = read_cgroup_limits(root_);
  EXPECT_EQ(limits.memory_limit, 1 << 30);
  EXPECT_EQ(limits.memory_used, 4096);
  EXPECT_EQ(limits.cpu_quota, 1.5);
}

TEST_F(MadeUpMachine, VersionOneOfCgroupsIsUnderstood) {
  write("proc/self/cgroup", "5:memory:/docker/abc\n3:cpuacct,cpu:/docker/abc\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "2147483648\n");  // the container's own path is not there
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "8192\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  const CgroupLimits limits = read_cgroup_limits(root_);
  EXPECT_EQ(limits.memory_limit, std::int64_t{2} << 30);
  EXPECT_EQ(limits.memory_used, 8192);
  EXPECT_EQ(limits.cpu_quota, 0.5);
}

TEST_F(MadeUpMachine, VersionOneSaysNoLimitByAHugeNumber) {
  write("proc/self/cgroup", "5:memory:/\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_FALSE(read_cgroup_limits(root_).memory_limit);
}

TEST_F(MadeUpMachine, ItsMemoryAndClockAreRead) {
  write("proc/meminfo", "MemTotal:       1048576 kB\nMemAvailable:    524288 kB\n");
  write("sys/devices/system/clocksource/clocksource0/current_clocksource", "kvm-clock\n");
  write("proc/sys/kernel/yama/ptrace_scope", "1\n");
  EXPECT_EQ(probe_memory(root_).total, 1 << 30);
  EXPECT_EQ(probe_memory(root_).available, 512 << 20);
  EXPECT_EQ(probe_clock(root_).source, "kvm-clock");
  EXPECT_GT(probe_clock(root_).resolution_ns, 0);
  EXPECT_EQ(probe_cross_memory(root_).ptrace_scope, 1);
  EXPECT_NE(probe_shared_memory(root_).shm_problem, "") << "it has no /dev/shm";
}

}  // namespace
}  // namespace tutti::cli
