// aligned_buffer.hpp: memory that grows when asked for more and is kept for the next time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace tutti {

/// Contents are lost when it grows. Aligned for vectors; the first writer touches its pages.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  AlignedBuffer(AlignedBuffer&& other) noexcept
      : memory_(std::move(other.memory_)), capacity_(std::exchange(other.capacity_, 0)) {}
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    memory_ = std::move(other.memory_);
    capacity_ = std::exchange(other.capacity_, 0);
    return *this;
  }

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

/// Buffers that calls take for as long as they run. The one that was given back last is given out first: it has likely the size.
class BufferPool {
 public:
  AlignedBuffer take() {
    if (idle_.empty()) return {};
    AlignedBuffer buffer = std::move(idle_.back());
    idle_.pop_back();
    return buffer;
  }
  void give_back(AlignedBuffer&& buffer) {
    if (buffer.capacity() > 0) idle_.push_back(std::move(buffer));
  }

 private:
  std::vector<AlignedBuffer> idle_;
};

}  // namespace tutti
