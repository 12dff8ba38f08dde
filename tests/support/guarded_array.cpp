// guarded_array.cpp: an array for a test, with any layout, that detects every unexpected write.
// SPDX-License-Identifier: Apache-2.0
#include "guarded_array.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>

#include "base/hash.hpp"
#include "element.hpp"

namespace tutti::contract {
namespace {

constexpr std::size_t guard_bytes = 64;
constexpr std::byte guard{0xa5};

std::vector<std::int64_t> row_major(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * std::max<std::int64_t>(shape[i], 1);
  return strides;
}

std::vector<std::int64_t> strides_for(const std::vector<std::int64_t>& shape, Memory memory) {
  std::vector<std::int64_t> strides = row_major(shape);
  switch (memory) {
    case Memory::contiguous: break;
    case Memory::transposed: {
      std::vector<std::int64_t> turned(shape.rbegin(), shape.rend());
      strides = row_major(turned);
      std::reverse(strides.begin(), strides.end());
      break;
    }
    case Memory::gapped:
      for (auto& stride : strides) stride *= 3;
      break;
    case Memory::reversed:
      if (!strides.empty()) strides[0] = -strides[0];
      break;
  }
  return strides;
}

}  // namespace

std::string_view name_of(Memory memory) {
  constexpr std::string_view names[] = {"contiguous", "transposed", "gapped", "reversed"};
  return names[static_cast<int>(memory)];
}

std::int64_t elements_of(const std::vector<std::int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

GuardedArray::GuardedArray(DType dtype, std::vector<std::int64_t> shape, Memory memory)
    : dtype_(dtype), shape_(std::move(shape)), strides_(strides_for(shape_, memory)) {
  std::int64_t reach = 1;  // elements from the lowest to the highest, both included
  for (std::size_t i = 0; i < shape_.size() && count() > 0; ++i) {
    const std::int64_t length = (shape_[i] - 1) * strides_[i];
    reach += std::abs(length);
    if (length < 0) lead_ -= length;
  }
  bytes_.assign(static_cast<std::size_t>(reach) * size_of(dtype_) + 2 * guard_bytes, guard);
  expected_ = bytes_;
}

View GuardedArray::view() { return {bytes_.data() + offset_of(0), dtype_, shape_, strides_}; }
View GuardedArray::read_only_view() const { return View::read_only(first(), dtype_, shape_, strides_); }

std::size_t GuardedArray::offset_of(std::int64_t index) const {
  std::int64_t at = lead_;
  for (std::size_t i = shape_.size(); i-- > 0 && index > 0;) {
    at += index % shape_[i] * strides_[i];
    index /= shape_[i];
  }
  return guard_bytes + static_cast<std::size_t>(at) * size_of(dtype_);
}

void GuardedArray::set(std::int64_t index, const std::byte* value) {
  std::memcpy(bytes_.data() + offset_of(index), value, size_of(dtype_));
  std::memcpy(expected_.data() + offset_of(index), value, size_of(dtype_));
}

void GuardedArray::expect(std::int64_t index, const std::byte* value) {
  std::memcpy(expected_.data() + offset_of(index), value, size_of(dtype_));
}

std::optional<std::string> GuardedArray::difference() const {
  if (bytes_ == expected_) return std::nullopt;
  for (std::int64_t i = 0; i < count(); ++i) {
    const std::size_t at = offset_of(i);
    if (!same_element(dtype_, &bytes_[at], &expected_[at])) {
      return fmt::format("element {} of {} is {} instead of {}", i, count(), element_text(dtype_, &bytes_[at]),
                         element_text(dtype_, &expected_[at]));
    }
  }
  return overrun();
}

std::optional<std::string> GuardedArray::overrun() const {
  std::vector<std::byte> accepted = expected_;
  for (std::int64_t i = 0; i < count(); ++i)
    std::memcpy(&accepted[offset_of(i)], &bytes_[offset_of(i)], size_of(dtype_));
  const auto [changed, was] = std::mismatch(bytes_.begin(), bytes_.end(), accepted.begin());
  if (changed == bytes_.end()) return std::nullopt;
  return fmt::format("byte {} was overwritten, which belongs to no element ({} bytes of elements, guards and gaps)",
                     changed - bytes_.begin(), bytes_.size());
}

void GuardedArray::scribble(std::byte value) { std::ranges::fill(bytes_, value); }

std::uint64_t GuardedArray::fingerprint() const {
  return Hash().add(std::string_view(reinterpret_cast<const char*>(bytes_.data()), bytes_.size())).value();
}

}  // namespace tutti::contract
