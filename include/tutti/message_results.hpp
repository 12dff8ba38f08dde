// message_results.hpp: receives that return what came.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <tutti/error.hpp>
#include <tutti/group.hpp>

namespace tutti {

namespace detail {

template <class T>
struct ReceivedValue {
  T value{};
  /// Mismatch if the message has other elements.
  View room(DType dtype, std::span<const std::int64_t> shape) {
    std::int64_t count = 1;
    for (const std::int64_t length : shape) count *= length;
    if constexpr (is_received_vector<T>) {
      check(dtype, dtype_of<typename T::value_type>, count, count);
      value.resize(static_cast<std::size_t>(count));
      return View(value);
    } else {
      check(dtype, dtype_of<T>, count, 1);
      return View(std::span(&value, 1));
    }
  }

 private:
  static void check(DType sent, DType wanted, std::int64_t count, std::int64_t room) {
    if (sent == wanted && count == room) return;
    throw Mismatch("it has " + std::to_string(count) + " elements of " + std::string(name_of(sent)) +
                   ", but recv() was asked for " + (room == count ? "" : "one element of ") +
                   std::string(name_of(wanted)));
  }
};

}  // namespace detail

template <ReceivedByValue T>
T Group::recv(int from, const MessageOptions& options) const {
  detail::ReceivedValue<T> received;
  recv_by([&](DType dtype, std::span<const std::int64_t> shape, std::uint8_t) { return received.room(dtype, shape); },
          from, options);
  return std::move(received.value);
}

template <ReceivedByValue T>
T Message::recv(TimeLimit timeout) {
  detail::ReceivedValue<T> received;
  recv_by([&](DType dtype, std::span<const std::int64_t> shape, std::uint8_t) { return received.room(dtype, shape); },
          timeout);
  return std::move(received.value);
}

}  // namespace tutti
