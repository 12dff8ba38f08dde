// view.hpp: a non-owning view of an array, in the shape of DLPack: pointer, dtype, shape, strides, device.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <ranges>
#include <span>

#include <tutti/dtype.hpp>

namespace tutti {

struct Device {
  enum class Kind : std::uint8_t { cpu = 1, cuda = 2 };  // DLPack's numbers
  Kind kind = Kind::cpu;
  int index = 0;
  friend bool operator==(Device, Device) = default;
};

/// A contiguous range whose memory outlives the call: a named vector or array, or a span. Temporaries are refused.
template <class R>
concept LastingRange = std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
    std::ranges::borrowed_range<R> && Element<std::ranges::range_value_t<R>>;

/// What a verb reads or writes. Copying a View copies no elements; whoever makes one keeps the memory alive.
class View {
 public:
  static constexpr int max_axes = 16;

  /// Nothing: "I have no array for this call".
  View() = default;
  // A call copies its views several times, and most have one or two axes: only those are copied.
  View(const View& other) noexcept { *this = other; }
  View& operator=(const View& other) noexcept {
    data_ = other.data_;
    dtype_ = other.dtype_;
    read_only_ = other.read_only_;
    device_ = other.device_;
    axes_ = other.axes_;
    present_ = other.present_;
    for (std::size_t i = 0; i < std::size_t(axes_); ++i) {
      shape_[i] = other.shape_[i];
      strides_[i] = other.strides_[i];
    }
    return *this;
  }

  /// One axis over a contiguous range. Const ranges make read-only views.
  template <LastingRange R>
  View(R&& range)  // NOLINT: implicit on purpose, so that `world.all_reduce(grads)` reads as it should
      : data_(const_cast<void*>(static_cast<const void*>(std::ranges::data(range)))),
        dtype_(dtype_of<std::ranges::range_value_t<R>>),
        read_only_(std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<R>>>),
        axes_(1),
        present_(true) {
    shape_[0] = static_cast<std::int64_t>(std::ranges::size(range));
    strides_[0] = 1;
  }

  /// Row-major contiguous memory.
  View(void* data, DType dtype, std::span<const std::int64_t> shape, Device device = {});
  /// Any strides, in elements (DLPack's convention). An empty `strides` means row-major contiguous.
  View(void* data, DType dtype, std::span<const std::int64_t> shape, std::span<const std::int64_t> strides,
       Device device = {});
  static View read_only(const void* data, DType dtype, std::span<const std::int64_t> shape,
                        std::span<const std::int64_t> strides = {}, Device device = {});

  [[nodiscard]] bool present() const { return present_; }
  [[nodiscard]] bool is_read_only() const { return read_only_; }
  [[nodiscard]] void* data() const { return data_; }
  [[nodiscard]] DType dtype() const { return dtype_; }
  [[nodiscard]] Device device() const { return device_; }
  [[nodiscard]] int axes() const { return axes_; }
  [[nodiscard]] std::span<const std::int64_t> shape() const { return {shape_.data(), std::size_t(axes_)}; }
  [[nodiscard]] std::span<const std::int64_t> strides() const { return {strides_.data(), std::size_t(axes_)}; }
  /// Elements; 1 for a view with no axes, 0 for one that is not present.
  [[nodiscard]] std::int64_t count() const { return axes_ == 1 && present_ ? shape_[0] : product(); }
  [[nodiscard]] std::int64_t bytes() const { return count() * std::int64_t(size_of(dtype_)); }
  /// Row-major without gaps (axes of length 1 may have any stride).
  [[nodiscard]] bool is_contiguous() const { return (axes_ == 1 && strides_[0] == 1) || is_row_major(); }
  /// The same elements from `begin` on, `length` of them along `axis`.
  [[nodiscard]] View slice(int axis, std::int64_t begin, std::int64_t length) const;

 private:
  [[nodiscard]] std::int64_t product() const;
  [[nodiscard]] bool is_row_major() const;

  void* data_ = nullptr;
  DType dtype_ = DType::uint8;
  bool read_only_ = false;
  Device device_{};
  int axes_ = 0;
  bool present_ = false;
  std::array<std::int64_t, max_axes> shape_;  // the first axes_ of them
  std::array<std::int64_t, max_axes> strides_;
};

}  // namespace tutti
