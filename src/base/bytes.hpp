// bytes.hpp: little-endian messages: a writer, and a reader that checks every length.
// SPDX-License-Identifier: Apache-2.0
//
// Strings and blobs are a 32-bit length and their bytes. A reader owns nothing and trusts nothing: each read checks how
// much remains, and each length is checked against the caller's limit before memory is allocated.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/error.hpp>

namespace tutti {

/// A message that its kind does not allow: a bug, another version, or a process that is not a Tutti rank.
class MalformedMessage : public Error {
  using Error::Error;
};

class ByteWriter {
 public:
  ByteWriter& u8(std::uint8_t value) { return put(value); }
  ByteWriter& u16(std::uint16_t value) { return put(value); }
  ByteWriter& u32(std::uint32_t value) { return put(value); }
  ByteWriter& u64(std::uint64_t value) { return put(value); }
  ByteWriter& i64(std::int64_t value) { return put(static_cast<std::uint64_t>(value)); }
  ByteWriter& f64(double value) { return put(std::bit_cast<std::uint64_t>(value)); }
  /// InvalidArgument for more than 4 GiB − 1.
  ByteWriter& string(std::string_view text) { return blob(std::as_bytes(std::span(text))); }
  ByteWriter& blob(std::span<const std::byte> bytes);
  /// Bytes without a length; the reader must know how many.
  ByteWriter& raw(std::span<const std::byte> bytes) {
    data_.insert(data_.end(), bytes.begin(), bytes.end());
    return *this;
  }

  [[nodiscard]] std::span<const std::byte> data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return data_.size(); }
  [[nodiscard]] std::vector<std::byte> take() && { return std::move(data_); }
  void clear() { data_.clear(); }

 private:
  template <std::unsigned_integral T>
  ByteWriter& put(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i) data_.push_back(static_cast<std::byte>(value >> (8 * i)));
    return *this;
  }

  std::vector<std::byte> data_;
};

class ByteReader {
 public:
  /// `what` names the message in errors, and must outlive the reader: "a hello frame".
  explicit ByteReader(std::span<const std::byte> data, std::string_view what = "a message")
      : rest_(data), what_(what), size_(data.size()) {}

  std::uint8_t u8() { return get<std::uint8_t>(); }
  std::uint16_t u16() { return get<std::uint16_t>(); }
  std::uint32_t u32() { return get<std::uint32_t>(); }
  std::uint64_t u64() { return get<std::uint64_t>(); }
  std::int64_t i64() { return static_cast<std::int64_t>(get<std::uint64_t>()); }
  double f64() { return std::bit_cast<double>(get<std::uint64_t>()); }
  /// At most `limit` bytes, counted without the length.
  std::string string(std::size_t limit);
  std::vector<std::byte> blob(std::size_t limit);
  /// Like blob, without a copy: a part of the reader's own data.
  std::span<const std::byte> blob_view(std::size_t limit);
  std::span<const std::byte> raw(std::size_t bytes);

  [[nodiscard]] std::size_t remaining() const { return rest_.size(); }
  /// Throws if anything is left over.
  void expect_end() const;

 private:
  template <std::unsigned_integral T>
  T get() {
    const auto bytes = raw(sizeof(T));
    T value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      value = static_cast<T>(value | static_cast<T>(static_cast<T>(bytes[i]) << (8 * i)));
    }
    return value;
  }

  std::span<const std::byte> rest_;
  std::string_view what_;
  std::size_t size_;
};

}  // namespace tutti
