// table.cpp: the semantics of store.hpp's calls.
// SPDX-License-Identifier: Apache-2.0
#include "store/table.hpp"

#include <fmt/format.h>

#include <tutti/error.hpp>

#include "base/environment.hpp"
#include "store/limits.hpp"

namespace tutti::store {

void Table::set(std::string_view key, Value value) {
  const auto found = values_.find(key);
  if (found != values_.end()) {
    found->second = std::move(value);
  } else {
    values_.emplace(key, std::move(value));
  }
}

Value Table::find(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : found->second;
}

std::int64_t Table::add(std::string_view key, std::int64_t amount) {
  const Value before = find(key);
  const auto counter = before ? parse_integer(*before) : std::optional<std::int64_t>(0);
  if (!counter) {
    throw InvalidArgument(
        fmt::format("add to the key {}: its value of {} bytes is no counter", shown_key(key), before->size()));
  }
  std::int64_t sum = 0;
  if (__builtin_add_overflow(*counter, amount, &sum)) {
    throw InvalidArgument(
        fmt::format("add {} to the key {}: the sum with {} does not fit 64 bits", amount, shown_key(key), *counter));
  }
  set(key, std::make_shared<const std::string>(std::to_string(sum)));
  return sum;
}

Table::Compared Table::compare_set(std::string_view key, std::optional<std::string_view> expected,
                                   std::string_view desired) {
  Value before = find(key);
  const bool same = before ? expected && *expected == *before : !expected;
  if (!same) return {.value = std::move(before), .changed = false};
  auto value = std::make_shared<const std::string>(desired);
  set(key, value);
  return {.value = std::move(value), .changed = true};
}

bool Table::remove(std::string_view key) {
  const auto found = values_.find(key);
  if (found == values_.end()) return false;
  values_.erase(found);
  return true;
}

}  // namespace tutti::store
