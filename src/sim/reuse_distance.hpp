// reuse_distance.hpp: how many bytes a rank accesses between two accesses of the same range of memory.
// SPDX-License-Identifier: Apache-2.0
//
// A cache holds what was accessed last. A range is still in the cache if the cache holds the bytes that were accessed
// since the range was accessed last, the range included: its reuse distance.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <utility>

namespace tutti::sim {

class ReuseDistance {
 public:
  /// Memories are identified by number.
  struct Range {
    int memory = 0;
    std::int64_t begin = 0, count = 0;
  };
  /// Accesses the range. Returns its reuse distance, on average over the range; `never` if it was not accessed before.
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
  std::int64_t now_ = 0;       // bytes accessed so far
};

}  // namespace tutti::sim
