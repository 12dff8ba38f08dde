// heap_segment.hpp: for the tests: memory in common of ranks that live in one process and share its one mapping.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstring>
#include <new>

#include "intranode/shared_segment.hpp"

namespace tutti::intranode {

/// Offsets are addresses. The thread sanitizer sees all ranks use the same ones.
class HeapSegment final : public SharedSegment {
 public:
  std::byte* allocate(std::size_t bytes) override {
    return static_cast<std::byte*>(::operator new (bytes, std::align_val_t{4096}));
  }
  void free(std::byte* block) override { ::operator delete (block, std::align_val_t{4096}); }
  [[nodiscard]] std::uint64_t offset_of(const std::byte* own) const override {
    return reinterpret_cast<std::uint64_t>(own);
  }
  [[nodiscard]] std::byte* at(int, std::uint64_t offset, std::size_t) const override {
    return reinterpret_cast<std::byte*>(offset);
  }
  std::optional<std::uint64_t> expose(const std::byte* data, std::size_t, std::uint64_t) override {
    if (!all_in_common) return std::nullopt;
    return offset_of(data);
  }
  void read(int, std::uint64_t address, std::byte* to, std::size_t bytes) override {
    std::memcpy(to, reinterpret_cast<const std::byte*>(address), bytes);
  }
  void connected(std::vector<const std::atomic<std::uint64_t>*>) override {}
  void departing() override {}
  void notify_all_members() override { notifications_.fetch_add(1, std::memory_order_relaxed); }
  void notify_all_after_fence() override { notify_all_members(); }
  [[nodiscard]] int notifications() const { return notifications_.load(std::memory_order_relaxed); }

  bool all_in_common = false;  // every array counts as lying in an arena

 private:
  std::atomic<int> notifications_ = 0;
};

}  // namespace tutti::intranode
