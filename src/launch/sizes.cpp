// sizes.cpp: sizes as people type them.
// SPDX-License-Identifier: Apache-2.0
#include "launch/sizes.hpp"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include <tutti/error.hpp>

#include "base/environment.hpp"

namespace tutti::launch {

namespace {

constexpr std::string_view accepted = "a number of bytes such as 8, 64K, 1M or 1.5G (K, M, G, T are powers of 1024)";

std::int64_t parse_part(std::string_view option, std::string_view whole, std::string_view part) {
  const auto bytes = parse_bytes(part);
  if (bytes && *bytes >= 0) return *bytes;
  const std::string where = part == whole ? "" : fmt::format(": \"{}\"", part);
  throw InvalidArgument(fmt::format("{} {}{}: not a size; give {}", option, whole, where, accepted));
}

void append_doubled(std::vector<std::int64_t>& sizes, std::string_view option, std::string_view whole,
                    std::string_view range) {
  const std::size_t colon = range.find(':');
  const std::int64_t first = parse_part(option, whole, range.substr(0, colon));
  if (colon == std::string_view::npos) return sizes.push_back(first);
  const std::int64_t last = parse_part(option, whole, range.substr(colon + 1));
  if (first < 1 || first > last) {
    throw InvalidArgument(
        fmt::format("{} {}: a range goes from a smaller size, 1 or more, to a larger one, as in 8:64M", option, whole));
  }
  // Halving the bound instead of doubling the size: the last doubling must not overflow.
  for (std::int64_t size = first;; size *= 2) {
    sizes.push_back(size);
    if (size > last / 2) return;
  }
}

}  // namespace

std::int64_t parse_size(std::string_view option, std::string_view text) { return parse_part(option, text, text); }

std::vector<std::int64_t> parse_sizes(std::string_view option, std::string_view text) {
  std::vector<std::int64_t> sizes;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    append_doubled(sizes, option, text, text.substr(begin, end - begin));
    begin = end + 1;
  }
  return sizes;
}

}  // namespace tutti::launch
