// fuse.hpp: which arrays of a nest travel together.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <tutti/buckets.hpp>

namespace tutti::parallel {

struct FuseLimits {
  /// An array of more bytes goes by itself: two copies would cost more than a call.
  std::int64_t array_bytes = std::int64_t{64} << 10;
  /// Arrays that travel together are as many bytes at most: what is packed should still be in the cache when it is sent.
  std::int64_t message_bytes = std::int64_t{1} << 20;

  /// Of ranks in shared memory, whose calls take less than a microsecond.
  static constexpr FuseLimits among_local_peers() {
    return {.array_bytes = std::int64_t{4} << 10, .message_bytes = std::int64_t{256} << 10};
  }
};

/// The messages that items become, by the places of the items, in the order of each message's first item: those of one dtype
/// together, within the limits. The same on every rank, as it follows from the items alone. Pure.
std::vector<std::vector<int>> plan_fused(std::span<const BucketItem> items, const FuseLimits& limits = {});

}  // namespace tutti::parallel
