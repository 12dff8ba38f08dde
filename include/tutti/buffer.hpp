// buffer.hpp: an array in memory that the other ranks of this host can read, so that collectives need not copy it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

#include <tutti/element.hpp>

namespace tutti {

/// Owns its elements; made by Group::empty<T>(). Movable, not copyable; a moved-from Buffer is empty. It is a
/// contiguous range: it converts to View and std::span and can be passed to every verb. Its memory may outlive the
/// group. The memory is freed when the Buffer is destroyed and no other rank can access it any more, whichever comes
/// later.
template <Element T>
class Buffer {
 public:
  using value_type = T;

  Buffer() = default;
  /// `memory` keeps the elements at `data` alive. Group::empty calls this.
  Buffer(std::shared_ptr<void> memory, T* data, std::size_t count)
      : memory_(std::move(memory)), data_(data), count_(count) {}
  Buffer(Buffer&& other) noexcept
      : memory_(std::move(other.memory_)),
        data_(std::exchange(other.data_, nullptr)),
        count_(std::exchange(other.count_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer taken(std::move(other));
    std::swap(memory_, taken.memory_);
    std::swap(data_, taken.data_);
    std::swap(count_, taken.count_);
    return *this;
  }

  [[nodiscard]] T* data() { return data_; }
  [[nodiscard]] const T* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return count_; }
  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] T* begin() { return data_; }
  [[nodiscard]] T* end() { return data_ + count_; }
  [[nodiscard]] const T* begin() const { return data_; }
  [[nodiscard]] const T* end() const { return data_ + count_; }
  [[nodiscard]] T& operator[](std::size_t index) { return data_[index]; }
  [[nodiscard]] const T& operator[](std::size_t index) const { return data_[index]; }

 private:
  std::shared_ptr<void> memory_;
  T* data_ = nullptr;
  std::size_t count_ = 0;
};

}  // namespace tutti
