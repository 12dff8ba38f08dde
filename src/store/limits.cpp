// limits.cpp: checks and wordings that all stores share.
// SPDX-License-Identifier: Apache-2.0
#include "store/limits.hpp"

#include <fmt/format.h>

#include <tutti/error.hpp>

namespace tutti::store {

void check_key(std::string_view key) {
  if (key.size() <= key_bytes_max) return;
  throw InvalidArgument(
      fmt::format("the key {} has {} bytes, at most {} are allowed", shown_key(key), key.size(), key_bytes_max));
}

void check_value(std::string_view key, std::string_view value) {
  if (value.size() <= value_bytes_max) return;
  throw InvalidArgument(
      fmt::format("the value for the key {} has {} bytes, at most {} are allowed: a store is for meeting, not for data",
                  shown_key(key), value.size(), value_bytes_max));
}

std::string shown_key(std::string_view key) {
  constexpr std::size_t shown_max = 80;
  std::string text = "'";
  for (const char byte : key.substr(0, shown_max)) {
    const bool printable = byte >= ' ' && byte <= '~' && byte != '\'' && byte != '\\';
    if (printable) {
      text += byte;
    } else {
      fmt::format_to(std::back_inserter(text), "\\x{:02x}", static_cast<unsigned char>(byte));
    }
  }
  text += key.size() > shown_max ? "…'" : "'";
  return text;
}

void throw_timeout(std::string_view store, std::string_view call, std::string_view key, std::string_view why) {
  throw Timeout(fmt::format("{}: {} of the key {} missed its deadline: {}", store, call, shown_key(key), why));
}

}  // namespace tutti::store
