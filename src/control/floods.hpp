// floods.hpp: which floods were seen, and the recent ones for links that open later.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

namespace tutti::control {

class FloodLog {
 public:
  // True the first time; numbers of one origin start at 1 and come nearly in order.
  bool is_new(int origin, std::uint64_t number);
  // Keeps an encoded flood for links to come; the oldest ones make room.
  void keep(std::vector<std::byte> encoded);
  [[nodiscard]] const std::deque<std::vector<std::byte>>& recent() const { return recent_; }

  static constexpr std::size_t recent_count_max = 512;
  static constexpr std::size_t recent_bytes_max = 1 << 20;

 private:
  struct Seen {
    std::uint64_t highest = 0;
    std::uint64_t below = 0;  // bit i: number highest − 1 − i was seen
  };
  std::map<int, Seen> seen_;
  std::deque<std::vector<std::byte>> recent_;
  std::size_t recent_bytes_ = 0;
};

}  // namespace tutti::control
