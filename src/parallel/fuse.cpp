// fuse.cpp: which arrays of a tree travel together.
// SPDX-License-Identifier: Apache-2.0
#include "parallel/fuse.hpp"

#include <array>

namespace tutti::parallel {

std::vector<std::vector<int>> plan_fused(std::span<const BucketItem> items, const FuseLimits& limits) {
  constexpr int none = -1;
  struct Open {
    int message = none;
    std::int64_t bytes = 0;
  };
  std::array<Open, dtype_count> open{};
  std::vector<std::vector<int>> messages;
  for (std::size_t place = 0; place < items.size(); ++place) {
    const auto [bytes, dtype] = items[place];
    if (bytes > limits.array_bytes) {
      messages.push_back({static_cast<int>(place)});
      continue;
    }
    Open& last = open[static_cast<std::size_t>(dtype)];
    if (last.message == none || last.bytes + bytes > limits.message_bytes) {
      last = {.message = static_cast<int>(messages.size())};
      messages.emplace_back();
    }
    messages[static_cast<std::size_t>(last.message)].push_back(static_cast<int>(place));
    last.bytes += bytes;
  }
  return messages;
}

}  // namespace tutti::parallel
