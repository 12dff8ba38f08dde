// words.cpp: ranks, spans of time and amounts as people read them.
// SPDX-License-Identifier: Apache-2.0
#include "watch/words.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string_view>

namespace tutti::watch {
namespace {

std::string three_digits(double value) {
  return fmt::format("{:.{}f}", value, value >= 99.95 || value == std::floor(value) ? 0 : 1);
}

}  // namespace

std::string say_ranks(std::span<const int> ranks) {
  if (ranks.size() == 1) return fmt::format("rank {}", ranks[0]);
  constexpr std::size_t named_max = 12;
  std::string text = "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (i == named_max) return text + fmt::format(" and {} more", ranks.size() - named_max);
    text += i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ";
    text += std::to_string(ranks[i]);
  }
  return text;
}

std::string say_time(std::int64_t ns) {
  const auto value = static_cast<double>(ns);
  if (ns < 0) return "-" + say_time(-ns);
  if (ns < 1000) return fmt::format("{} ns", ns);
  if (ns < 1'000'000) return three_digits(value * 1e-3) + " µs";
  if (ns < 1'000'000'000) return three_digits(value * 1e-6) + " ms";
  if (ns < 120'000'000'000) return three_digits(value * 1e-9) + " s";
  return fmt::format("{} min", ns / 60'000'000'000);
}

std::string say_bytes(double bytes) {
  constexpr std::array<std::string_view, 6> units = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < units.size()) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{} {}", three_digits(bytes), units[unit]);
}

std::string say_count(double count) {
  if (count >= 1e6) return three_digits(count * 1e-6) + " M";
  if (count >= 1e4) return three_digits(count * 1e-3) + " k";
  return three_digits(count);
}

}  // namespace tutti::watch
