// arena_test.cpp: memory files of this process: blocks, pages, limits, forks.
// SPDX-License-Identifier: Apache-2.0
#include "shm/arena.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>

#include <tutti/error.hpp>

#include "base/bytes.hpp"
#include "base/sanitizers.hpp"
#include "shm/limits.hpp"
#include "tests/support/child_process.hpp"

namespace tutti::shm {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr std::uint64_t mib = 1u << 20;

// Pages that the file really has, in bytes: what the system would count.
std::uint64_t bytes_on_file(const Arena& arena) {
  struct stat status {};
  fstat(arena.address().descriptor, &status);
  return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

TEST(Arena, blocks_are_zero_aligned_committed_and_apart) {
  Arena arena({.bytes = 64 * mib});
  std::byte* const first = arena.allocate(1000);
  std::byte* const second = arena.allocate(1000, 4096);
  std::byte* const large = arena.allocate(8 * mib, 2 * mib);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % 128, 0U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(second) % 4096, 0U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(large) % (2 * mib), 0U);
  EXPECT_TRUE(std::all_of(large, large + 8 * mib, [](std::byte value) { return value == std::byte{0}; }));
  EXPECT_EQ(bytes_on_file(arena), arena.committed_bytes());
  EXPECT_GE(arena.committed_bytes(), 8 * mib + 2000);
  EXPECT_LE(arena.committed_bytes(), 8 * mib + 32768) << "only what is needed";
  EXPECT_TRUE(arena.contains(large, 8 * mib));
  EXPECT_FALSE(arena.contains(large, 64 * mib));
  EXPECT_FALSE(arena.contains(&arena, 1));
  EXPECT_EQ(arena.offset_of(large), std::uint64_t(large - reinterpret_cast<std::byte*>(&arena.header())));
}

TEST(Arena, freed_memory_is_kept_up_to_the_limit_and_then_given_back_to_the_system) {
  Arena arena({.bytes = 64 * mib, .keep_limit = 4 * mib});
  std::byte* const small = arena.allocate(2 * mib);
  std::byte* const large = arena.allocate(16 * mib);
  arena.free(small);
  EXPECT_GE(bytes_on_file(arena), 18 * mib) << "kept";
  EXPECT_EQ(arena.allocate(2 * mib), small) << "and used again";
  arena.free(large);
  EXPECT_LT(bytes_on_file(arena), 3 * mib) << "given back";
  EXPECT_EQ(bytes_on_file(arena), arena.committed_bytes());
  EXPECT_THAT([&] { arena.free(large); }, ThrowsMessage<InvalidArgument>(HasSubstr("no block begins")));
}

TEST(Arena, what_was_set_aside_is_there_when_it_is_needed) {
  Arena arena({.bytes = 64 * mib, .commit_limit = 8 * mib});
  arena.reserve(3 * mib);
  EXPECT_THROW(arena.reserve(6 * mib), OutOfMemory);
  EXPECT_NE(arena.allocate_spare(4 * mib), nullptr);
  EXPECT_THAT([&] { (void)arena.allocate_spare(2 * mib); }, ThrowsMessage<OutOfMemory>(HasSubstr("1 MiB left of")));
  EXPECT_NE(arena.allocate(2 * mib), nullptr);
  EXPECT_NE(arena.allocate(mib), nullptr);
  EXPECT_NE(arena.allocate_spare(mib), nullptr) << "what was needed is not set aside any more";
  EXPECT_THROW((void)arena.allocate(mib), OutOfMemory);
}

TEST(Arena, running_out_is_an_error_that_says_how_much_there_is) {
  Arena arena({.bytes = 64 * mib, .commit_limit = 8 * mib});
  std::byte* const half = arena.allocate(5 * mib);
  EXPECT_THAT([&] { (void)arena.allocate(6 * mib); },
              ThrowsMessage<Error>(AllOf(HasSubstr("6 MiB asked for"), HasSubstr("3 MiB left of"),
                                         HasSubstr("TUTTI_SHM_LIMIT"), HasSubstr("5 MiB in use"))));
  arena.free(half);
  EXPECT_NE(arena.allocate(6 * mib), nullptr) << "what was kept is given back first";
  Arena narrow({.bytes = mib});
  EXPECT_THAT([&] { (void)narrow.allocate(2 * mib); }, ThrowsMessage<Error>(HasSubstr("no room for 2 MiB")));
  EXPECT_THROW((void)narrow.allocate(~std::size_t{0}), Error);
  EXPECT_THROW((void)narrow.allocate(8, 3), InvalidArgument);
}

TEST(Arena, refuses_more_than_the_machine_has_before_the_kernel_kills_somebody) {
  Arena arena;
  const std::uint64_t too_much = memory_left().bytes + (std::uint64_t{256} << 20);
  EXPECT_THAT([&] { (void)arena.allocate(too_much); }, ThrowsMessage<Error>(HasSubstr("shared memory of this rank")));
  EXPECT_LT(bytes_on_file(arena), mib);
}

TEST(Arena, file_has_no_name_is_private_and_cannot_be_cut) {
  Arena arena({.bytes = 16 * mib});
  const int file = arena.address().descriptor;
  struct stat status {};
  ASSERT_EQ(fstat(file, &status), 0);
  EXPECT_EQ(status.st_nlink, 0U);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  EXPECT_EQ(ftruncate(file, 4096), -1);
  EXPECT_EQ(fcntl(file, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
}

TEST(Arena, address_survives_the_way_as_text_and_nonsense_does_not) {
  const ArenaAddress address{.host_id = "a host with spaces\n",
                             .process = 12,
                             .descriptor = 7,
                             .bytes = 1 << 20,
                             .token = ~std::uint64_t{0},
                             .base = 0x7f0000000000,
                             .process_namespace = 4026531836};
  const ArenaAddress again = ArenaAddress::from_text(address.to_text());
  EXPECT_EQ(again.to_text(), address.to_text());
  EXPECT_EQ(again.host_id, address.host_id);
  EXPECT_EQ(again.token, address.token);
  EXPECT_EQ(ArenaAddress::from_text(ArenaAddress{}.to_text()).descriptor, -1);
  for (const char* text : {"", "arena/1", "arena/1 ", "arena/2 1 2 3 4 5 6 h", "arena/1 1 2 3 4 5 h",
                           "arena/1 1 x 3 4 5 6 h", "arena/1 1 99999999999 3 4 5 6 h", "arena/1 1 2 -3 4 5 6 h"}) {
    EXPECT_THROW(ArenaAddress::from_text(text), MalformedMessage) << text;
  }
}

TEST(Arena, options_come_from_the_environment) {
  const auto options =
      ArenaOptions::from({{"TUTTI_SHM_LIMIT", "64M"}, {"TUTTI_HOST_ID", "left"}, {"TUTTI_SHM_ATTACH", "0"}});
  EXPECT_EQ(options.commit_limit, 64 * mib);
  EXPECT_EQ(options.host_id, "left");
  EXPECT_FALSE(options.siblings_may_read);
  EXPECT_THROW((void)ArenaOptions::from({{"TUTTI_SHM_LIMIT", "much"}}), InvalidArgument);
  EXPECT_EQ(Arena({.bytes = mib}).address().host_id, host_id_of_machine());
  EXPECT_EQ(host_id_of_machine().size(), 36U) << "a boot id";
}

#if !TUTTI_ADDRESS_SANITIZER && !TUTTI_THREAD_SANITIZER  // their shadow memory is beyond any such limit
TEST(Arena, becomes_smaller_where_address_space_is_scarce_and_says_so_where_there_is_none) {
  ChildProcess scarce([](Line& line) {
    const rlimit limit{.rlim_cur = 512 * mib, .rlim_max = 512 * mib};
    setrlimit(RLIMIT_AS, &limit);
    const Arena arena({.ranks = 4});
    line.say(std::to_string(arena.address().bytes));
    return 0;
  });
  const auto bytes = std::stoull(scarce.line().hear());
  EXPECT_GE(bytes, 16 * mib);
  EXPECT_LE(bytes, 512 * mib / 2 / 4);
  EXPECT_EQ(scarce.wait(), 0);

  ChildProcess none([](Line& line) {
    const rlimit limit{.rlim_cur = 128 * mib, .rlim_max = 128 * mib};
    setrlimit(RLIMIT_AS, &limit);
    try {
      const Arena arena({.bytes = 512 * mib});
    } catch (const Unsupported& error) {
      line.say(error.what());
    }
    return 0;
  });
  EXPECT_THAT(none.line().hear(), AllOf(HasSubstr("512 MiB of address space cannot be had"), HasSubstr("ulimit -v")));
  EXPECT_EQ(none.wait(), 0);
}
#endif

TEST(Arena, respects_the_limit_of_file_sizes_which_would_end_the_process) {
  ChildProcess child([](Line& line) {
    const rlimit limit{.rlim_cur = 32 * mib, .rlim_max = 32 * mib};
    setrlimit(RLIMIT_FSIZE, &limit);
    const Arena arena;
    line.say(std::to_string(arena.address().bytes));
    return 0;
  });
  EXPECT_EQ(child.line().hear(), std::to_string(32 * mib));
  EXPECT_EQ(child.wait(), 0);
}

TEST(Arena, a_forked_child_reads_but_neither_allocates_nor_frees) {
  Arena arena({.bytes = 16 * mib, .keep_limit = 0});
  std::byte* const block = arena.allocate(4 * mib);
  block[77] = std::byte{42};
  ChildProcess child([&](Line&) {
    arena.free(block);  // would punch a hole into the parent's memory
    try {
      (void)arena.allocate(mib);
      return 1;
    } catch (const Unsupported&) {}
    return block[77] == std::byte{42} ? 0 : 2;
  });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(block[77], std::byte{42});
  EXPECT_GE(bytes_on_file(arena), 4 * mib);
}

}  // namespace
}  // namespace tutti::shm
