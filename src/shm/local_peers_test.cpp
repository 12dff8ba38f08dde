// local_peers_test.cpp: ranks that are threads and processes find each other's memory, and learn why where they do not.
// SPDX-License-Identifier: Apache-2.0
#include "shm/local_peers.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include <tutti/error.hpp>

#include "shm/cross_memory.hpp"
#include "tests/support/child_process.hpp"

namespace tutti::shm {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr std::uint64_t mib = 1u << 20;

std::shared_ptr<Arena> make_arena() { return std::make_shared<Arena>(ArenaOptions{.bytes = 16 * mib}); }

TEST(LocalPeers, in_one_process_share_one_mapping_that_outlives_its_owner) {
  auto mine = make_arena(), other = make_arena();
  const LocalPeers local_peers(mine, 0, {mine->address(), other->address()});
  std::byte* const block = other->allocate(64);
  ASSERT_TRUE(local_peers.reaches(0) && local_peers.reaches(1)) << local_peers.why_not(1);
  EXPECT_EQ(local_peers.at(1, other->offset_of(block), 64), block);
  EXPECT_EQ(local_peers.at(0, 0, 1), reinterpret_cast<std::byte*>(&mine->header()));
  block[5] = std::byte{9};
  const std::uint64_t offset = other->offset_of(block);
  other.reset();
  EXPECT_EQ(local_peers.at(1, offset, 64)[5], std::byte{9});
}

TEST(LocalPeers, offsets_from_others_are_checked) {
  auto mine = make_arena();
  const LocalPeers local_peers(mine, 0, {mine->address(), ArenaAddress{}});
  EXPECT_NE(local_peers.at(0, 16 * mib, 0), nullptr);
  EXPECT_THAT([&] { (void)local_peers.at(0, 16 * mib - 8, 9); }, ThrowsMessage<Error>(HasSubstr("has 16777216 bytes")));
  EXPECT_THROW((void)local_peers.at(0, ~std::uint64_t{0}, 2), Error);
  EXPECT_THROW((void)local_peers.at(0, 2, ~std::uint64_t{0}), Error);
  EXPECT_THAT([&] { (void)local_peers.header(1); }, ThrowsMessage<Error>(HasSubstr("it has no shared memory")));
}

// A rank in a process of its own: tells its address, and on "write" puts a mark where it is told.
int rank_that_writes(Line& line) {
  const auto arena = make_arena();
  line.say(arena->address().to_text());
  const auto peer = ArenaAddress::from_text(line.hear());
  const LocalPeers local_peers(arena, 1, {peer, arena->address()});
  if (!local_peers.reaches(0)) return 1;
  line.say(local_peers.may_read_memory_of(0) ? "may read" : "may not read");
  const auto offset = std::stoull(line.hear());
  std::memset(local_peers.at(0, offset, 100), 0x5a, 100);
  line.say("written");
  (void)line.hear();
  return 0;
}

TEST(LocalPeers, in_two_processes_write_each_others_memory) {
  auto mine = make_arena();
  std::byte* const block = mine->allocate(100);
  ChildProcess child(rank_that_writes);
  const auto theirs = ArenaAddress::from_text(child.line().hear());
  const LocalPeers local_peers(mine, 0, {mine->address(), theirs});
  ASSERT_TRUE(local_peers.reaches(1)) << local_peers.why_not(1);
  EXPECT_EQ(local_peers.header(1).token, theirs.token);
  EXPECT_EQ(local_peers.process_of(1), child.process());
  child.line().say(mine->address().to_text());
  (void)child.line().hear();
  child.line().say(std::to_string(mine->offset_of(block)));
  EXPECT_EQ(child.line().hear(), "written");
  EXPECT_TRUE(std::all_of(block, block + 100, [](std::byte value) { return value == std::byte{0x5a}; }));
  child.line().say("end");
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(local_peers.header(1).token, theirs.token) << "a dead rank's memory can still be read";
}

TEST(LocalPeers, reading_memory_of_a_process_is_tried_not_guessed) {
  auto mine = make_arena();
  const std::uint64_t secret = 4711;
  const auto address = reinterpret_cast<std::uintptr_t>(&secret);
  EXPECT_TRUE(can_read(getpid(), address, 4711));
  EXPECT_FALSE(can_read(getpid(), address, 4712));
  EXPECT_FALSE(can_read(getpid(), 8, 4711)) << "nothing is mapped there";
  EXPECT_FALSE(can_read(std::int64_t{1} << 30, address, 4711)) << "no such process";
}

TEST(LocalPeers, the_parent_is_permitted_to_read_only_where_yama_asks_for_it) {
  EXPECT_EQ(reader_to_permit("", 100), std::nullopt);
  EXPECT_EQ(reader_to_permit("0\n", 100), std::nullopt);
  EXPECT_EQ(reader_to_permit("1\n", 100), 100);
  EXPECT_EQ(reader_to_permit("1\n", 1), std::nullopt) << "everybody descends from process 1";
  EXPECT_EQ(reader_to_permit("1\n", 0), std::nullopt);
  EXPECT_EQ(reader_to_permit("2\n", 100), std::nullopt) << "only root may: naming somebody has no effect";
}

TEST(LocalPeers, whoever_cannot_be_reached_is_told_with_the_reason) {
  auto mine = make_arena();
  const int memory = memfd_create("unrelated", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  const UniqueFd closed_at_end(memory);
  ASSERT_EQ(ftruncate(memory, 16 * mib), 0);
  const auto reason = [&](auto change) {
    ArenaAddress address = mine->address();
    address.token ^= 1;  // so that it is not found as this process's own
    change(address);
    return LocalPeers(mine, 0, {address}).why_not(0);
  };
  EXPECT_EQ(reason([](ArenaAddress& address) { address.host_id = "elsewhere"; }), "it is on another host");
  EXPECT_EQ(reason([](ArenaAddress& address) { address.descriptor = -1; }), "it has no shared memory");
  EXPECT_THAT(reason([](ArenaAddress& address) { address.process_namespace ^= 1; }), HasSubstr("process namespace"));
  EXPECT_THAT(reason([](ArenaAddress& address) { address.process = 1 << 30; }), HasSubstr("is gone, or hidden"));
  EXPECT_THAT(reason([](ArenaAddress& address) { address.descriptor = 1 << 20; }), HasSubstr("is gone, or hidden"));
  EXPECT_THAT(reason([](ArenaAddress& address) { address.bytes += 4096; }), HasSubstr("is not its shared memory"));
  EXPECT_THAT(reason([](ArenaAddress&) {}), HasSubstr("is another one than it told"));
  EXPECT_THAT(reason([&](ArenaAddress& address) { address.descriptor = memory; }),
              HasSubstr("is not its shared memory"))
      << "the right size, but it could be cut";
}

TEST(LocalPeers, another_user_does_not_get_at_the_memory) {
  const uid_t nobody = 65534;
  if (geteuid() != 0) return;  // only root can become somebody else; that nobody else gets in is then the kernel's word
  const auto mine = make_arena();
  ChildProcess child([&](Line& line) {
    if (setresuid(nobody, nobody, nobody) != 0) return 1;
    const auto theirs = make_arena();
    const LocalPeers local_peers(theirs, 1, {mine->address(), theirs->address()});
    line.say(local_peers.why_not(0));
    return local_peers.reaches(0) || local_peers.may_read_memory_of(0) ? 2 : 0;
  });
  EXPECT_THAT(child.line().hear(), HasSubstr("may not be looked into: another user"));
  EXPECT_EQ(child.wait(), 0);
}

// Everything that this process has open or mapped and whose name contains `text`.
std::vector<std::string> holds(const std::string& text) {
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    const std::string target = std::filesystem::read_symlink(entry.path(), error).string();
    if (target.find(text) != std::string::npos) found.push_back(target);
  }
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(text) != std::string::npos) found.push_back(line);
  }
  return found;
}

TEST(LocalPeers, leave_no_descriptor_and_no_mapping_behind) {
  ASSERT_TRUE(holds("memfd:tutti").empty());
  {
    auto mine = make_arena();
    ChildProcess child(rank_that_writes);
    const LocalPeers local_peers(mine, 0, {mine->address(), ArenaAddress::from_text(child.line().hear())});
    EXPECT_EQ(holds("memfd:tutti").size(), 3U)
        << "one descriptor and one mapping of its own, one mapping of the other's";
    ChildProcess grandchild([&](Line&) { return holds("memfd:tutti").size() == 2 ? 0 : 1; });
    EXPECT_EQ(grandchild.wait(), 0) << "a forked child gets this rank's own memory and not the local peer's";
  }
  EXPECT_TRUE(holds("memfd:tutti").empty());
}

bool dev_shm_has_files_of_ours() {
  std::error_code error;
  const std::filesystem::directory_iterator folder("/dev/shm", error);
  return std::any_of(begin(folder), end(folder),
                     [](const auto& entry) { return entry.path().string().find("tutti") != std::string::npos; });
}

// The memory of a killed rank is looked for where it could be held: in a descriptor or mapping, or under a name.
TEST(LocalPeers, memory_of_a_killed_rank_lives_exactly_as_long_as_its_last_local_peer) {
  auto mine = make_arena();
  ChildProcess child([](Line& line) {
    const auto arena = make_arena();
    std::byte* const block = arena->allocate(8 * mib);
    block[0] = std::byte{7};
    line.say(arena->address().to_text());
    line.say(std::to_string(arena->offset_of(block)));
    (void)line.hear();
    return 0;
  });
  const auto address = ArenaAddress::from_text(child.line().hear());
  const auto offset = std::stoull(child.line().hear());
  auto local_peers = std::make_unique<LocalPeers>(mine, 0, std::vector{mine->address(), address});
  ASSERT_TRUE(local_peers->reaches(1));
  child.signal(SIGKILL);
  EXPECT_EQ(child.wait(), -SIGKILL);
  EXPECT_EQ(local_peers->at(1, offset, 1)[0], std::byte{7}) << "no SIGBUS for those who still look";
  EXPECT_THAT(LocalPeers(mine, 0, {address}).why_not(0), HasSubstr("is gone")) << "nobody else gets at it";
  EXPECT_EQ(holds("memfd:tutti").size(), 3U);
  local_peers.reset();
  EXPECT_EQ(holds("memfd:tutti").size(), 2U) << "and with the last mapping the file, which has no name, is gone";
  EXPECT_FALSE(dev_shm_has_files_of_ours());
}

}  // namespace
}  // namespace tutti::shm
