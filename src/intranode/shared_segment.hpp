// shared_segment.hpp: the memory that the members of a group have in common.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace tutti::intranode {

/// A seam: the arenas of one host's ranks, or plain memory of one process whose threads are the ranks.
class SharedSegment {
 public:
  /// Once all members have departed: none of them uses anything that was offered.
  virtual ~SharedSegment() = default;
  /// Of this rank's own part. Committed and aligned to pages. Throws Error when memory runs out.
  virtual std::byte* allocate(std::size_t bytes) = 0;
  virtual void free(std::byte* block) = 0;
  [[nodiscard]] virtual std::uint64_t offset_of(const std::byte* own) const = 0;
  /// Where member `index` has what it calls `offset`.
  [[nodiscard]] virtual std::byte* at(int index, std::uint64_t offset, std::size_t bytes) const = 0;
  /// If the array lies in this rank's part: its offset, which peers may then use until they have consumed `seq`.
  virtual std::optional<std::uint64_t> expose(const std::byte* data, std::size_t bytes, std::uint64_t seq) = 0;
  /// Copies out of any memory of member `index`. Only where IntranodeGroup::Parts::cross_memory says so. Throws TransferFailed.
  virtual void read(int index, std::uint64_t address, std::byte* to, std::size_t bytes) = 0;
  /// Before the first execution: where each member tells which sequence number it has consumed.
  virtual void connected(std::vector<const std::atomic<std::uint64_t>*> consumed) = 0;
  /// This member is about to depart: it reads the others' words no more.
  virtual void departing() = 0;
  /// Wakes those members that sleep: something was published for them.
  virtual void notify_all_members() = 0;
  /// The same for a caller that has made a full fence since.
  virtual void notify_all_after_fence() = 0;
};

}  // namespace tutti::intranode
