// guarded_test.cpp: secrets lie in pages that no core file gets, and are gone when dropped.
// SPDX-License-Identifier: Apache-2.0
#include "base/guarded.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace tutti {
namespace {

// The VmFlags of the mapping that holds an address.
std::string flags_of(const void* address) {
  std::ifstream smaps("/proc/self/smaps");
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  bool here = false;
  for (std::string line; std::getline(smaps, line);) {
    unsigned long begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) here = begin <= wanted && wanted < end;
    if (here && line.starts_with("VmFlags:")) return line + " ";
  }
  return "";
}

TEST(Guarded, LiesInPagesThatAreLeftOutOfDumps) {
  const auto memory = guarded_memory();
  EXPECT_THAT(flags_of(memory.get()), testing::HasSubstr(" dd "));
  int on_the_stack = 0;
  EXPECT_THAT(flags_of(&on_the_stack), testing::Not(testing::HasSubstr(" dd "))) << "the test can tell";
}

TEST(Guarded, IsWipedWhenTheLastHolderLetsGo) {
  auto memory = guarded_memory();
  std::byte* const slot = memory.get();
  std::memset(slot, 0x5a, guarded_bytes_max);
  auto copy = memory;
  memory.reset();
  EXPECT_EQ(slot[0], std::byte{0x5a});
  copy.reset();
  EXPECT_TRUE(std::all_of(slot, slot + guarded_bytes_max, [](std::byte byte) { return byte == std::byte{0}; }));
}

TEST(Guarded, HoldersGetMemoryOfTheirOwn) {
  std::vector<std::shared_ptr<std::byte[]>> held;
  for (int i = 0; i < 200; ++i) {
    held.push_back(guarded_memory());
    std::memset(held.back().get(), i, guarded_bytes_max);
  }
  for (std::size_t i = 0; i < held.size(); ++i) EXPECT_EQ(held[i][guarded_bytes_max - 1], static_cast<std::byte>(i));
}

}  // namespace
}  // namespace tutti
