// hazards.hpp: which earlier steps a step must wait for, from the elements that both touch.
// SPDX-License-Identifier: Apache-2.0
//
// For every run of elements it remembers the step that wrote it last and the steps that have read it since. A read waits
// for the writer; a write waits for the readers, or for the writer where nobody has read. This is how a superscalar
// processor orders instructions. The runs are kept in an ordered map without gaps; a write joins the runs it covers, so
// the work is amortised over the splits that reads and writes caused before.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <memory_resource>
#include <utility>
#include <vector>

namespace tutti {

class Hazards {
 public:
  static constexpr std::uint32_t nobody = UINT32_MAX;

  Hazards() { runs_.emplace(INT64_MIN, Run{}); }
  Hazards(const Hazards&) = delete;
  Hazards& operator=(const Hazards&) = delete;

  /// Calls `wait_for(step)` for each earlier step that conflicts, possibly several times for one.
  template <class WaitFor>
  void read(std::int64_t begin, std::int64_t end, std::uint32_t step, WaitFor wait_for) {
    const auto [first, last] = runs_between(begin, end);
    for (auto run = first; run != last; ++run) {
      Run& state = run->second;
      if (state.writer != nobody) wait_for(state.writer);
      readers_.push_back({.step = step, .next = state.readers});
      state.readers = static_cast<std::uint32_t>(readers_.size() - 1);
    }
  }

  template <class WaitFor>
  void write(std::int64_t begin, std::int64_t end, std::uint32_t step, WaitFor wait_for) {
    const auto [first, last] = runs_between(begin, end);
    for (auto run = first; run != last; ++run) {
      const Run& state = run->second;
      if (state.readers == nobody && state.writer != nobody) wait_for(state.writer);
      for (std::uint32_t r = state.readers; r != nobody; r = readers_[r].next) wait_for(readers_[r].step);
    }
    first->second = {.writer = step, .readers = nobody};
    runs_.erase(std::next(first), last);
  }

 private:
  struct Run {
    std::uint32_t writer = nobody;
    std::uint32_t readers = nobody;  // head of a list in readers_; runs that were split share their tails
  };
  struct Reader {
    std::uint32_t step;
    std::uint32_t next;
  };
  using Runs = std::pmr::map<std::int64_t, Run>;  // by begin; each ends where the next begins

  // The runs that make up [begin, end), split where it begins and ends. One lookup: the end is found by walking, over
  // runs that the caller visits anyway.
  std::pair<Runs::iterator, Runs::iterator> runs_between(std::int64_t begin, std::int64_t end) {
    auto last = runs_.upper_bound(begin);
    auto first = std::prev(last);
    if (first->first != begin) first = runs_.emplace_hint(last, begin, first->second);
    while (last != runs_.end() && last->first < end) ++last;
    if (last == runs_.end() || last->first != end) last = runs_.emplace_hint(last, end, std::prev(last)->second);
    return {first, last};
  }

  std::pmr::monotonic_buffer_resource memory_{1024};
  Runs runs_{&memory_};
  std::vector<Reader> readers_;
};

}  // namespace tutti
