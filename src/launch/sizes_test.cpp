// sizes_test.cpp: sizes, lists and ranges as people type them, and what is refused.
// SPDX-License-Identifier: Apache-2.0
#include "launch/sizes.hpp"

#include <string>

#include <gmock/gmock.h>

#include <tutti/error.hpp>

namespace tutti::launch {
namespace {

using testing::ElementsAre;

std::string refusal(std::string_view text) {
  try {
    parse_sizes("--sizes", text);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Sizes, HaveSuffixesThatArePowersOf1024) {
  EXPECT_EQ(parse_size("--bytes", "8"), 8);
  EXPECT_EQ(parse_size("--bytes", "0"), 0);
  EXPECT_EQ(parse_size("--bytes", "64K"), 64 << 10);
  EXPECT_EQ(parse_size("--bytes", "1M"), 1 << 20);
  EXPECT_EQ(parse_size("--bytes", "2GiB"), std::int64_t{2} << 30);
  EXPECT_EQ(parse_size("--bytes", "1.5K"), 1536);
}

TEST(Sizes, AnUnknownSuffixIsRefusedWithTheOptionAndWhatIsAccepted) {
  try {
    parse_size("--bytes", "1Q");
    FAIL() << "1Q was accepted";
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(),
                 "--bytes 1Q: not a size; give a number of bytes such as 8, 64K, 1M or 1.5G (K, M, G, T are powers of "
                 "1024)");
  }
  for (const char* text : {"", "-1", "K", "1 K", "1e3", "0x10", "99999999999G"}) {
    EXPECT_THROW(parse_size("--bytes", text), InvalidArgument) << text;
  }
}

TEST(Sizes, RangesDoubleAndListsKeepTheirOrder) {
  EXPECT_THAT(parse_sizes("--sizes", "8:64"), ElementsAre(8, 16, 32, 64));
  EXPECT_THAT(parse_sizes("--sizes", "3:20"), ElementsAre(3, 6, 12));
  EXPECT_THAT(parse_sizes("--sizes", "1M,8,1K:2K"), ElementsAre(1 << 20, 8, 1024, 2048));
  EXPECT_THAT(parse_sizes("--sizes", "5:5"), ElementsAre(5));
  EXPECT_THAT(parse_sizes("--sizes", "0"), ElementsAre(0));
}

TEST(Sizes, ARangeUpToTheLargestSizeEnds) {
  EXPECT_EQ(parse_sizes("--sizes", "1:4194304T").back(), std::int64_t{1} << 62);
}

TEST(Sizes, ABadPartIsNamedWithinItsList) {
  EXPECT_THAT(refusal("8,1Q,16"), testing::StartsWith("--sizes 8,1Q,16: \"1Q\": not a size"));
  EXPECT_THAT(refusal("8,"), testing::StartsWith("--sizes 8,: \"\": not a size"));
  EXPECT_THAT(refusal("64:8"), testing::HasSubstr("from a smaller size"));
  EXPECT_THAT(refusal("0:8"), testing::HasSubstr("1 or more"));
  EXPECT_THAT(refusal("8:"), testing::HasSubstr("not a size"));
}

}  // namespace
}  // namespace tutti::launch
