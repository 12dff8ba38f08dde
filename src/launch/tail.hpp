// tail.hpp: the last lines somebody said.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace tutti::launch {

// Costs a copy of at most `kept_bytes` per call, however much is added.
class Tail {
 public:
  void add(std::string_view text) {
    if (text.size() > kept_bytes) text.remove_prefix(text.size() - kept_bytes);
    if (text_.size() + text.size() > 2 * kept_bytes)
      text_.erase(0, text_.size() - std::min(text_.size(), kept_bytes - text.size()));
    text_.append(text);
  }

  // At most so many lines, of those that are still whole.
  [[nodiscard]] std::string_view last_lines(std::size_t lines_max) const {
    std::string_view rest = text_;
    std::size_t begin = rest.size();
    for (std::size_t lines = 0; lines < lines_max && begin > 0; ++lines) {
      const std::size_t newline = begin < 2 ? std::string_view::npos : rest.rfind('\n', begin - 2);
      begin = newline == std::string_view::npos ? 0 : newline + 1;
    }
    return rest.substr(begin);
  }

 private:
  static constexpr std::size_t kept_bytes = 8192;
  std::string text_;
};

}  // namespace tutti::launch
