// system_files_test.cpp: texts of /proc as other machines have them, and this machine's own.
// SPDX-License-Identifier: Apache-2.0
#include "base/system_files.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

namespace tutti {
namespace {

const std::string second_mount =
    "22 1 0:20 / /proc rw shared:5 - proc proc rw\n30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 "
    "rw\n";
const std::string first_mount =
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

TEST(ControlGroups, are_the_folders_of_the_group_that_the_controller_limits) {
  struct Case {
    const char* what;
    std::string controller;
    std::string groups, mounts;
    int version;
    std::vector<std::string> folders;
  };
  const std::string container = "30 23 0:26 /box/7 /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
  const std::vector<Case> cases = {
      {"at the root", "memory", "0::/\n", second_mount, 2, {"/sys/fs/cgroup"}},
      {"two below",
       "memory",
       "0::/a/b\n",
       second_mount,
       2,
       {"/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup"}},
      {"version 1 wins where it has the memory",
       "memory",
       "4:memory:/a\n0::/b\n",
       first_mount,
       1,
       {"/sys/fs/cgroup/memory/a", "/sys/fs/cgroup/memory"}},
      {"version 2 beside a version 1 without memory",
       "memory",
       "4:cpu:/a\n0::/b\n",
       first_mount,
       2,
       {"/sys/fs/cgroup/unified/b", "/sys/fs/cgroup/unified"}},
      {"a container that sees the host's path",
       "memory",
       "0::/box/7/x\n",
       container,
       2,
       {"/sys/fs/cgroup/x", "/sys/fs/cgroup"}},
      {"a container that has a namespace of its own", "memory", "0::/\n", container, 2, {"/sys/fs/cgroup"}},
      {"moved outside of its namespace", "memory", "0::/../other\n", container, 2, {"/sys/fs/cgroup"}},
      {"version 2 alone",
       "",
       "9:name=systemd:/x\n0::/user/a\n",
       first_mount,
       2,
       {"/sys/fs/cgroup/unified/user/a", "/sys/fs/cgroup/unified/user", "/sys/fs/cgroup/unified"}},
      {"version 2 alone, where there is none", "", "4:memory:/a\n", first_mount, 0, {}},
      {"a controller that is mounted nowhere", "pids", "7:pids:/a\n", first_mount, 0, {}},
      {"no mount", "memory", "0::/a\n", "", 0, {}},
      {"nonsense", "memory", "::\nx\n4:\n", "1 2 3\n- - -\n", 0, {}},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(test.what);
    const ControlGroups found =
        control_groups(test.controller, [&](const std::string& path) -> std::optional<std::string> {
          return path == "/proc/self/cgroup" ? test.groups : test.mounts;
        });
    EXPECT_EQ(found.version, test.version);
    EXPECT_EQ(found.folders, test.folders);
  }
}

TEST(ProcessStatus, has_a_name_that_may_hold_parentheses_and_spaces) {
  const std::string numbers = "17 17 0 -1 4194304 1 2 3 4 50 6 0 0 20 0 3 0 8888 1 2\n";
  const auto status = parse_process_status("17 (a (strange) name) S 4 " + numbers);
  ASSERT_TRUE(status);
  EXPECT_EQ(status->id, 17);
  EXPECT_EQ(status->parent, 4);
  EXPECT_EQ(status->state, 'S');
  EXPECT_EQ(status->name, "a (strange) name");
  EXPECT_EQ(status->threads, 3);
  EXPECT_EQ(status->cpu_ticks, 56);
  EXPECT_EQ(status->started_ticks, 8888U);
}

TEST(ProcessStatus, is_unknown_where_the_text_is_cut) {
  EXPECT_FALSE(parse_process_status(""));
  EXPECT_FALSE(parse_process_status("17 (cut"));
  EXPECT_FALSE(parse_process_status("17 (cut) S 4 17 17"));
}

TEST(ProcessStatus, of_this_process_names_its_parent_and_its_start) {
  const auto status = process_status(getpid());
  ASSERT_TRUE(status);
  EXPECT_EQ(status->id, getpid());
  EXPECT_EQ(status->parent, getppid());
  EXPECT_EQ(start_of_process(getpid()), status->started_ticks);
  EXPECT_GT(status->started_ticks, 0U);
  EXPECT_EQ(start_of_process(0), 0U) << "there is no process 0";
}

TEST(SystemFiles, that_cannot_be_read_are_told_from_empty_ones) {
  EXPECT_EQ(read_system_file("/proc/no such file"), std::nullopt);
  EXPECT_FALSE(boot_id().empty());
  EXPECT_EQ(boot_id().find('\n'), std::string::npos);
}

}  // namespace
}  // namespace tutti
