// reuse_distance.hpp: how long ago a rank has last read or written a piece of memory, counted in bytes.
// SPDX-License-Identifier: Apache-2.0
//
// A cache holds what was touched last. So the bytes that a rank has touched since it touched a piece, this piece included,
// are what the cache must hold for the piece to be there still.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <utility>

namespace tutti::sim {

class ReuseDistance {
 public:
  /// Memories are told apart by number.
  struct Range {
    int memory = 0;
    std::int64_t begin = 0, count = 0;
  };
  /// Touches the range. The bytes since its last touch, on average over the range; `never` where there was none.
  std::int64_t touch(const Range& range, std::int64_t never) {
    if (range.count == 0) return 0;
    const Key begin{range.memory, range.begin}, end{range.memory, range.begin + range.count};
    split(begin);
    split(end);
    double sum = static_cast<double>(range.count) * static_cast<double>(never);
    const auto first = parts_.lower_bound(begin), last = parts_.lower_bound(end);
    for (auto part = first; part != last; ++part) {
      const auto bytes = static_cast<double>(part->second.end - part->first.second);
      sum += bytes * static_cast<double>(now_ - part->second.when + range.count - never);
    }
    parts_.erase(first, last);
    now_ += range.count;
    parts_[begin] = {.end = end.second, .when = now_};
    return static_cast<std::int64_t>(sum / static_cast<double>(range.count));
  }

 private:
  using Key = std::pair<int, std::int64_t>;  // memory, begin
  struct Part {
    std::int64_t end = 0, when = 0;
  };
  // A part that reaches across `at` becomes two.
  void split(const Key& at) {
    auto part = parts_.lower_bound(at);
    if (part == parts_.begin()) return;
    part = std::prev(part);
    if (part->first.first != at.first || part->second.end <= at.second) return;
    parts_[at] = part->second;
    part->second.end = at.second;
  }

  std::map<Key, Part> parts_;  // they do not overlap
  std::int64_t now_ = 0;       // bytes touched so far
};

}  // namespace tutti::sim
