// store.hpp: the key-value store through which ranks find each other; memory, file, tcp and prefix stores.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <tutti/clock.hpp>

namespace tutti {

/// Values are bytes; a counter made by add() reads back as its decimal text. Every call ends by `deadline`; the Timeout
/// names the key. Thread-safe.
class Store {
 public:
  virtual ~Store() = default;

  virtual void set(std::string_view key, std::string_view value, TimePoint deadline) = 0;
  /// Waits until the key exists.
  virtual std::string get(std::string_view key, TimePoint deadline) = 0;
  /// The value, if the key exists now.
  virtual std::optional<std::string> try_get(std::string_view key, TimePoint deadline) = 0;
  /// Adds to a counter that starts at 0 and returns the sum.
  virtual std::int64_t add(std::string_view key, std::int64_t amount, TimePoint deadline) = 0;
  /// Sets `desired` if the value is `expected` (nullopt: if the key is absent). Returns the value afterwards.
  virtual std::string compare_set(std::string_view key, std::optional<std::string_view> expected,
                                  std::string_view desired, TimePoint deadline) = 0;
  /// Returns whether there was something to remove.
  virtual bool remove(std::string_view key, TimePoint deadline) = 0;

  /// Waits until the key exists, without fetching its value.
  virtual void wait(std::string_view key, TimePoint deadline) { (void)get(key, deadline); }
};

}  // namespace tutti
