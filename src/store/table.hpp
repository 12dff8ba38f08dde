// table.hpp: what a store does, without waiting, locks or I/O: keys, values and counters.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace tutti::store {

// Shared, so that a value on its way to a thousand clients exists once. Null: there is none.
using Value = std::shared_ptr<const std::string>;

class Table {
 public:
  struct Compared {
    Value value;  // what is there afterwards; null if nothing is
    bool changed;
  };

  void set(std::string_view key, Value value);
  [[nodiscard]] Value find(std::string_view key) const;
  // InvalidArgument if the value there is no counter, or the sum does not fit 64 bits; the value is left as it was.
  std::int64_t add(std::string_view key, std::int64_t amount);
  Compared compare_set(std::string_view key, std::optional<std::string_view> expected, std::string_view desired);
  bool remove(std::string_view key);
  [[nodiscard]] const std::map<std::string, Value, std::less<>>& values() const { return values_; }
  void clear() { values_.clear(); }

 private:
  std::map<std::string, Value, std::less<>> values_;
};

}  // namespace tutti::store
