// limits_test.cpp: memory limits of made-up machines.
// SPDX-License-Identifier: Apache-2.0
#include "shm/limits.hpp"

#include <gtest/gtest.h>

#include <map>

namespace tutti::shm {
namespace {

constexpr std::uint64_t gib = std::uint64_t{1} << 30;

using Files = std::map<std::string, std::string>;

ReadFile machine(Files files) {
  return [files = std::move(files)](const std::string& path) -> std::optional<std::string> {
    const auto found = files.find(path);
    if (found == files.end()) return std::nullopt;
    return found->second;
  };
}

std::string number(std::uint64_t value) { return std::to_string(value) + "\n"; }

const std::string meminfo = "MemTotal:       16777216 kB\nMemFree:         1048576 kB\nMemAvailable:    8388608 kB\n";
const std::string second_mount =
    "22 1 0:20 / /proc rw shared:5 - proc proc rw\n30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 "
    "rw\n";
const std::string first_mount =
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

TEST(Limits, without_control_groups_the_free_memory_of_the_machine_counts) {
  const auto left = memory_left(machine({{"/proc/meminfo", meminfo}}));
  EXPECT_EQ(left.bytes, 8 * gib);
  EXPECT_EQ(left.source, "the machine's free memory");
  EXPECT_EQ(memory_of_machine(machine({{"/proc/meminfo", meminfo}})), 16 * gib);
}

TEST(Limits, without_proc_there_is_no_limit_and_the_size_of_the_machine_is_still_known) {
  EXPECT_EQ(memory_left(machine({})).bytes, std::numeric_limits<std::uint64_t>::max());
  EXPECT_GT(memory_of_machine(machine({})), gib / 4);
}

TEST(Limits, of_version_2_the_tightest_group_up_to_the_root_counts) {
  const std::string outer = "/sys/fs/cgroup/job", inner = outer + "/step";
  Files files{{"/proc/meminfo", meminfo},
              {"/proc/self/cgroup", "0::/job/step\n"},
              {"/proc/self/mountinfo", second_mount},
              {inner + "/memory.max", "max\n"},
              {inner + "/memory.current", number(3 * gib)},
              {outer + "/memory.max", number(6 * gib)},
              {outer + "/memory.high", "max\n"},
              {outer + "/memory.current", number(4 * gib)}};
  auto left = memory_left(machine(files));
  EXPECT_EQ(left.bytes, 2 * gib);
  EXPECT_EQ(left.source, "the control group /sys/fs/cgroup/job");

  files[outer + "/memory.stat"] = "anon 7\ninactive_file_x 5\ninactive_file " + number(gib);
  EXPECT_EQ(memory_left(machine(files)).bytes, 3 * gib) << "page cache can be dropped";

  files[inner + "/memory.high"] = number(3 * gib + 100);
  EXPECT_EQ(memory_left(machine(files)).bytes, 100U) << "above memory.high everything crawls";

  files[inner + "/memory.current"] = number(9 * gib);
  EXPECT_EQ(memory_left(machine(files)).bytes, 0U) << "over the limit is nothing, not a huge number";
}

TEST(Limits, of_version_1_a_number_near_2_to_the_63_is_no_limit) {
  const std::string group = "/sys/fs/cgroup/memory/box";
  Files files{{"/proc/meminfo", meminfo},
              {"/proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/box\n0::/\n"},
              {"/proc/self/mountinfo", first_mount},
              {group + "/memory.limit_in_bytes", "9223372036854771712\n"},
              {group + "/memory.usage_in_bytes", number(gib)}};
  EXPECT_EQ(memory_left(machine(files)).bytes, 8 * gib);
  files[group + "/memory.limit_in_bytes"] = number(2 * gib);
  files[group + "/memory.stat"] = "inactive_file 1\ntotal_inactive_file " + number(gib / 2);
  EXPECT_EQ(memory_left(machine(files)).bytes, 2 * gib - gib / 2);
}

TEST(Limits, reads_fields_of_meminfo_by_their_whole_name) {
  EXPECT_EQ(meminfo_bytes("MemFreeX: 3 kB\nMemFree:   2 kB\n", "MemFree"), 2048U);
  EXPECT_EQ(meminfo_bytes("MemFree: lots\n", "MemFree"), std::nullopt);
  EXPECT_EQ(meminfo_bytes("", "MemFree"), std::nullopt);
}

TEST(Limits, of_this_machine_are_plausible) {
  EXPECT_GT(memory_left().bytes, std::uint64_t{16} << 20);
  EXPECT_LE(memory_left().bytes, memory_of_machine());
}

}  // namespace
}  // namespace tutti::shm
