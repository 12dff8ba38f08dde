// guarded_array.hpp: an array for a test, with any layout, that detects every unexpected write.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tutti/view.hpp>

namespace tutti::contract {

/// How the elements lie in memory.
enum class Memory : std::uint8_t {
  contiguous,
  transposed,  // the first axis runs fastest
  gapped,      // two elements that belong to nobody after each one
  reversed,    // the first axis runs backwards: a negative stride
};
inline constexpr int memory_count = 4;
std::string_view name_of(Memory memory);

std::int64_t elements_of(const std::vector<std::int64_t>& shape);

/// Elements are numbered in row-major order, however they lie. Guard bytes surround them and fill the gaps.
class GuardedArray {
 public:
  GuardedArray(DType dtype, std::vector<std::int64_t> shape, Memory memory = Memory::contiguous);

  [[nodiscard]] View view();
  [[nodiscard]] View read_only_view() const;
  [[nodiscard]] DType dtype() const { return dtype_; }
  [[nodiscard]] const std::vector<std::int64_t>& shape() const { return shape_; }
  [[nodiscard]] std::int64_t count() const { return elements_of(shape_); }

  /// Before the call: sets an element.
  void set(std::int64_t index, const std::byte* value);
  /// What the call must have put there. All other bytes must stay as they were set.
  void expect(std::int64_t index, const std::byte* value);
  /// The first byte or element that is not as it should be, in words.
  [[nodiscard]] std::optional<std::string> difference() const;
  /// The same, whatever the elements are: after a call that failed.
  [[nodiscard]] std::optional<std::string> overrun() const;

  /// What a caller may do with its memory once a call has ended: overwrites everything.
  void scribble(std::byte value = std::byte{0x5e});
  /// Changes with every byte.
  [[nodiscard]] std::uint64_t fingerprint() const;

 private:
  [[nodiscard]] std::size_t offset_of(std::int64_t index) const;
  [[nodiscard]] const std::byte* first() const { return bytes_.data() + offset_of(0); }

  DType dtype_;
  std::vector<std::int64_t> shape_, strides_;
  std::int64_t lead_ = 0;  // elements between the first guard and the element with number 0
  std::vector<std::byte> bytes_, expected_;
};

}  // namespace tutti::contract
