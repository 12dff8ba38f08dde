// suggest.cpp: edit distance with swaps, and a bound on what is called near.
// SPDX-License-Identifier: Apache-2.0
#include "launch/suggest.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace tutti::launch {

std::size_t edit_distance(std::string_view from, std::string_view to) {
  const std::size_t width = to.size() + 1;
  std::vector<std::size_t> before_last(width), last(width), row(width);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= from.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j < width; ++j) {
      const std::size_t replaced = last[j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    std::swap(before_last, last);
    std::swap(last, row);
  }
  return last[to.size()];
}

namespace {

// A capital in the wrong place is the smallest slip of all.
std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return result;
}

}  // namespace

std::string nearest(std::string_view word, std::span<const std::string> known) {
  // A third of the letters may be wrong; of short words one.
  const auto letters =
      static_cast<std::size_t>(std::count_if(word.begin(), word.end(), [](char c) { return c != '-' && c != '_'; }));
  const std::size_t distance_max = std::max<std::size_t>(1, letters / 3);
  std::string best;
  std::size_t best_distance = distance_max + 1;
  for (const std::string& candidate : known) {
    std::size_t distance = edit_distance(lower(word), lower(candidate));
    if (letters >= 3 && candidate.starts_with(word)) distance = std::min<std::size_t>(distance, 1);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> known) {
  const std::string best = nearest(word, known);
  return best.empty() ? "" : "; did you mean " + best + "?";
}

}  // namespace tutti::launch
