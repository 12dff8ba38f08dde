// commons.hpp: the memory that the members of a circle have in common.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace tutti::shared {

/// A seam: the arenas of one host's ranks, or plain memory of one process whose threads are the ranks.
class Commons {
 public:
  virtual ~Commons() = default;
  /// Of this rank's own part. Committed and aligned to pages. Throws Error when memory runs out.
  virtual std::byte* allocate(std::size_t bytes) = 0;
  virtual void free(std::byte* block) = 0;
  [[nodiscard]] virtual std::uint64_t offset_of(const std::byte* own) const = 0;
  /// Where member `index` has what it calls `offset`.
  [[nodiscard]] virtual std::byte* at(int index, std::uint64_t offset, std::size_t bytes) const = 0;
  /// Wakes those members that sleep: something was published for them.
  virtual void ring_all() = 0;
};

}  // namespace tutti::shared
