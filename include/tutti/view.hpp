// view.hpp: a non-owning view of an array, in the shape of DLPack: pointer, dtype, shape, strides, device.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <ranges>
#include <span>

#include <tutti/dtype.hpp>
#include <tutti/element.hpp>
#include <tutti/wrong_use.hpp>

namespace tutti {

struct Device {
  enum class Kind : std::uint8_t { cpu = 1, cuda = 2 };  // DLPack's numbers
  Kind kind = Kind::cpu;
  int index = 0;
  friend bool operator==(Device, Device) = default;
};

/// A matrix of another library: Eigen's, for one. Where it tells how far its rows and columns are apart, it is seen with two axes, the one that is
/// slower in memory first (the columns of Eigen's usual matrices); otherwise as one axis of all elements, in the order of memory.
template <class M>
concept Matrix = !std::ranges::contiguous_range<M> && requires(M & m) {
  requires std::is_pointer_v<decltype(m.data())>;
  { m.rows() } -> std::convertible_to<std::int64_t>;
  { m.cols() } -> std::convertible_to<std::int64_t>;
  requires Element<std::remove_cvref_t<decltype(*m.data())>>;
};

/// std::mdspan, and what is like it.
template <class M>
concept MultiSpan = requires(const M& m) {
  requires std::is_pointer_v<decltype(m.data_handle())>;
  { M::rank() } -> std::convertible_to<std::size_t>;
  { m.extent(0) } -> std::convertible_to<std::int64_t>;
  { m.stride(0) } -> std::convertible_to<std::int64_t>;
  requires Element<std::remove_cvref_t<decltype(*m.data_handle())>>;
};

template <class T>
concept Viewable = LastingRange<T> || MultiSpan<std::remove_cvref_t<T>> ||
    (std::is_lvalue_reference_v<T>&& Matrix<std::remove_reference_t<T>>);

/// An array that a verb reads or writes. Copying a View copies no elements. The creator of a View keeps its memory
/// alive.
class View {
 public:
  static constexpr int max_axes = 16;

  /// No array: this rank passes none in this call.
  View() = default;
  // A call copies its views several times. Most have one or two axes, and only those are copied.
  View(const View& other) noexcept { *this = other; }
  View& operator=(const View& other) noexcept {
    data_ = other.data_;
    kind_ = other.kind_;
    for (std::size_t i = 0; i < std::size_t(kind_.axes); ++i) {
      shape_[i] = other.shape_[i];
      strides_[i] = other.strides_[i];
    }
    return *this;
  }

  /// One axis over a contiguous range. Const ranges make read-only views.
  template <LastingRange R>
  View(R&& range)  // NOLINT: implicit on purpose, so that `world.all_reduce(grads)` reads as it should
      : View(std::ranges::data(range), static_cast<std::int64_t>(std::ranges::size(range))) {}
  template <class M>
  requires(MultiSpan<std::remove_cvref_t<M>> && !LastingRange<M>) View(M&& span);  // NOLINT: implicit, as above
  template <Matrix M>
  View(M& matrix);  // NOLINT: implicit, as above
  /// Nothing that could be an array: says what to write.
  template <class T>
  requires(detail::NoOption<std::remove_cvref_t<T>> && !std::is_same_v<std::remove_cvref_t<T>, View> && !Viewable<T>)
      View(T&&) {  // NOLINT: implicit, as above
    detail::explain_no_array<T>();
  }

  /// Row-major contiguous memory.
  View(void* data, DType dtype, std::span<const std::int64_t> shape, Device device = {});
  /// Any strides, in elements (DLPack's convention). An empty `strides` means row-major contiguous.
  View(void* data, DType dtype, std::span<const std::int64_t> shape, std::span<const std::int64_t> strides,
       Device device = {});
  static View read_only(const void* data, DType dtype, std::span<const std::int64_t> shape,
                        std::span<const std::int64_t> strides = {}, Device device = {});

  [[nodiscard]] bool present() const { return kind_.present; }
  [[nodiscard]] bool is_read_only() const { return kind_.read_only; }
  [[nodiscard]] void* data() const { return data_; }
  [[nodiscard]] DType dtype() const { return kind_.dtype; }
  [[nodiscard]] Device device() const { return {.kind = kind_.device, .index = kind_.device_index}; }
  [[nodiscard]] int axes() const { return int(kind_.axes); }
  [[nodiscard]] std::span<const std::int64_t> shape() const { return {shape_.data(), std::size_t(kind_.axes)}; }
  [[nodiscard]] std::span<const std::int64_t> strides() const { return {strides_.data(), std::size_t(kind_.axes)}; }
  /// Elements; 1 for a view with no axes, 0 for one that is not present.
  [[nodiscard]] std::int64_t count() const { return kind_.axes == 1 && kind_.present ? shape_[0] : product(); }
  [[nodiscard]] std::int64_t bytes() const { return count() * std::int64_t(size_of(kind_.dtype)); }
  /// Row-major without gaps (axes of length 1 may have any stride).
  [[nodiscard]] bool is_contiguous() const { return (kind_.axes == 1 && strides_[0] == 1) || is_row_major(); }
  /// Equal in everything but the address.
  [[nodiscard]] bool is_like(const View& other) const {
    const auto mine = kind_.words(), theirs = other.kind_.words();
    if (mine[0] != theirs[0] || mine[1] != theirs[1]) return false;
    for (std::size_t i = 0; i < std::size_t(kind_.axes); ++i) {  // one or two: not worth a memcmp
      if (shape_[i] != other.shape_[i] || strides_[i] != other.strides_[i]) return false;
    }
    return true;
  }
  /// The same elements from `begin` on, `length` of them along `axis`.
  [[nodiscard]] View slice(int axis, std::int64_t begin, std::int64_t length) const;

 private:
  template <Element T>
  View(T* data, std::int64_t count) noexcept;
  [[nodiscard]] std::int64_t product() const;
  [[nodiscard]] bool is_row_major() const;

  /// Two words without padding, so that comparing the views of small calls is cheap.
  struct Kind {
    std::int64_t axes = 0;
    DType dtype = DType::uint8;
    bool read_only = false;
    bool present = false;
    Device::Kind device = Device::Kind::cpu;
    std::int32_t device_index = 0;
    [[nodiscard]] std::array<std::uint64_t, 2> words() const {
      return std::bit_cast<std::array<std::uint64_t, 2>>(*this);
    }
  };

  void* data_ = nullptr;
  Kind kind_{};
  std::array<std::int64_t, max_axes> shape_;  // the first of them, one for each axis
  std::array<std::int64_t, max_axes> strides_;
};

}  // namespace tutti

#include <tutti/view_of.hpp>
