// stream_test.cpp: a streaming copy is a copy, at every alignment and length.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/stream.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/kernel_reference.hpp"

namespace tutti::kernel {
namespace {

TEST(Stream, CopiesEveryByteAndNoOther) {
  on_every_target([] {
    Random random(5);
    for (const std::size_t count : test_counts) {
      for (std::size_t shift = 0; shift < 64; shift += 7) {
        Elements<std::uint8_t> from(count, shift / 3), to(count, shift);
        from.randomize(random);
        copy_streaming(to.data(), from.data(), count);
        for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(to.get(i), from.get(i)) << i << " of " << count;
        ASSERT_TRUE(to.guards_hold());
      }
    }
  });
}

}  // namespace
}  // namespace tutti::kernel
