// aligned_buffer.hpp: memory that grows when asked for more and is kept for the next time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace tutti {

/// Contents are lost when it grows. Aligned for vectors; pages are touched by whoever writes first.
class AlignedBuffer {
 public:
  std::byte* reserve(std::size_t bytes) {
    if (bytes > capacity_) {
      memory_.reset();  // before taking more, so that the peak is one buffer, not two
      memory_.reset(static_cast<std::byte*>(::operator new(bytes, alignment)));
      capacity_ = bytes;
    }
    return memory_.get();
  }
  [[nodiscard]] std::byte* data() const { return memory_.get(); }
  [[nodiscard]] std::size_t capacity() const { return capacity_; }

 private:
  static constexpr std::align_val_t alignment{64};
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete(memory, alignment); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::size_t capacity_ = 0;
};

}  // namespace tutti
