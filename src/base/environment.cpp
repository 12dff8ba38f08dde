// environment.cpp: variables of a process and the texts that stand for sizes and durations.
// SPDX-License-Identifier: Apache-2.0
#include "base/environment.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <span>

#include <tutti/error.hpp>

#include "base/guarded.hpp"

extern char** environ;

namespace tutti {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr double kib = 1024.0;
constexpr std::array byte_units = {Unit{"", 1.0}, Unit{"K", kib}, Unit{"M", kib* kib}, Unit{"G", kib* kib* kib},
                                   Unit{"T", kib* kib* kib* kib}};
constexpr std::array duration_units = {Unit{"", 1e9},   Unit{"ns", 1.0},   Unit{"us", 1e3},
                                       Unit{"µs", 1e3}, Unit{"ms", 1e6},   Unit{"s", 1e9},
                                       Unit{"m", 60e9}, Unit{"min", 60e9}, Unit{"h", 3600e9}};

constexpr std::string_view accepted_bytes = "a number of bytes, such as 4096, 64K, 1M or 2G";
constexpr std::string_view accepted_duration = "a duration, such as 30s, 250ms, 10us, 5m or 1h";
constexpr std::string_view accepted_flag = "1, true, yes or on, or 0, false, no or off";

// A number and a unit, in the base unit. Fractions are rounded to whole base units; whole numbers stay exact.
std::optional<std::int64_t> parse_with_unit(std::string_view text, std::span<const Unit> units) {
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  const auto number_end = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::string_view number = text.substr(0, number_end);
  const std::string_view name = text.substr(number_end);
  const auto unit = std::ranges::find(units, name, &Unit::name);
  if (unit == units.end()) return std::nullopt;

  if (const auto whole = parse_integer(number)) {
    std::int64_t result = 0;
    if (__builtin_mul_overflow(*whole, static_cast<std::int64_t>(unit->factor), &result)) return std::nullopt;
    return result;
  }
  double value = 0;
  const auto [end, error] = std::from_chars(number.begin(), number.end(), value, std::chars_format::fixed);
  if (error != std::errc() || end != number.end()) return std::nullopt;
  const double result = std::round(value * unit->factor);
  if (result >= 0x1p63) return std::nullopt;
  return static_cast<std::int64_t>(result);
}

[[noreturn]] void refuse(std::string_view name, std::string_view value, std::string_view accepted) {
  throw InvalidArgument(
      fmt::format("environment variable {}=\"{}\" cannot be used: it must be {}", name, value, accepted));
}

// What conceal_secret_of_process() took. It belongs to the process, as the environment does.
struct Concealed {
  mutable std::mutex mutex;
  std::shared_ptr<std::byte[]> text;  // ends with a zero
};

Concealed& concealed() {
  static auto* const here = new Concealed;
  return *here;
}

// Up to one digit behind the point, and none where it would be a zero.
std::string format_scaled(double value, std::string_view unit) {
  const double rounded = std::round(value * 10) / 10;
  return rounded == std::floor(rounded) ? fmt::format("{:.0f} {}", rounded, unit)
                                        : fmt::format("{:.1f} {}", rounded, unit);
}

}  // namespace

Environment Environment::of_process() {
  Variables variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const auto equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    variables.emplace(text.substr(0, equals), text.substr(equals + 1));  // of duplicates the first counts, as in getenv
  }
  const Concealed& secret = concealed();
  const std::lock_guard lock(secret.mutex);
  // A secret that was set since counts first.
  if (secret.text) variables.emplace(secret_variable, reinterpret_cast<const char*>(secret.text.get()));
  return Environment(std::move(variables));
}

// In place, too: unsetenv leaves the text where the kernel laid it down.
void Environment::conceal_secret_of_process() {
  const std::string name(secret_variable);
  char* const text = getenv(name.c_str());
  if (text == nullptr) return;
  const std::size_t bytes = std::strlen(text);
  if (bytes > 0 && bytes < guarded_bytes_max) {
    Concealed& secret = concealed();
    const std::lock_guard lock(secret.mutex);
    secret.text = guarded_memory();
    std::memcpy(secret.text.get(), text, bytes + 1);
  }
  wipe(text, bytes);
  unsetenv(name.c_str());
}

Environment::~Environment() {
  if (const auto found = variables_.find(secret_variable); found != variables_.end())
    wipe(found->second.data(), found->second.size());
}

std::optional<std::string> Environment::get(std::string_view name) const {
  const auto found = variables_.find(name);
  if (found == variables_.end()) return std::nullopt;
  return found->second;
}

std::optional<std::int64_t> Environment::integer(std::string_view name, std::int64_t lowest,
                                                 std::int64_t highest) const {
  const auto text = get(name);
  if (!text || text->empty()) return std::nullopt;
  const auto value = parse_integer(*text);
  if (!value || *value < lowest || *value > highest) {
    const bool bounded_above = highest != std::numeric_limits<std::int64_t>::max();
    const bool bounded_below = lowest != std::numeric_limits<std::int64_t>::min();
    refuse(name, *text,
           bounded_above   ? fmt::format("a whole number from {} to {}", lowest, highest)
           : bounded_below ? fmt::format("a whole number, {} or more", lowest)
                           : "a whole number");
  }
  return value;
}

std::optional<Duration> Environment::duration(std::string_view name) const {
  const auto text = get(name);
  if (!text || text->empty()) return std::nullopt;
  const auto value = parse_duration(*text);
  if (!value) refuse(name, *text, accepted_duration);
  return value;
}

std::optional<std::int64_t> Environment::bytes(std::string_view name) const {
  const auto text = get(name);
  if (!text || text->empty()) return std::nullopt;
  const auto value = parse_bytes(*text);
  if (!value) refuse(name, *text, accepted_bytes);
  return value;
}

std::optional<bool> Environment::flag(std::string_view name) const {
  const auto text = get(name);
  if (!text || text->empty()) return std::nullopt;
  for (std::string_view yes : {"1", "true", "yes", "on"}) {
    if (*text == yes) return true;
  }
  for (std::string_view no : {"0", "false", "no", "off"}) {
    if (*text == no) return false;
  }
  refuse(name, *text, accepted_flag);
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.begin(), text.end(), value);
  if (error != std::errc() || end != text.end()) return std::nullopt;
  return value;
}

std::optional<std::int64_t> parse_bytes(std::string_view text) {
  if (text.ends_with('B')) {
    text.remove_suffix(1);
    if (text.ends_with('i')) {
      text.remove_suffix(1);
      if (!text.empty() && text.back() >= '0' && text.back() <= '9') return std::nullopt;  // "5iB" has no unit
    }
  }
  return parse_with_unit(text, byte_units);
}

std::optional<Duration> parse_duration(std::string_view text) {
  const auto nanoseconds = parse_with_unit(text, duration_units);
  if (!nanoseconds) return std::nullopt;
  return Duration(*nanoseconds);
}

std::string format_bytes(std::int64_t bytes) {
  constexpr std::array<std::string_view, 7> units = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  // 1023.95 would be printed as 1024.0: the next unit says the same as 1.
  while (std::abs(value) >= (unit == 0 ? 1024.0 : 1023.95) && unit + 1 < units.size()) {
    value /= 1024;
    ++unit;
  }
  return format_scaled(value, units[unit]);
}

std::string format_duration(Duration duration) {
  const auto nanoseconds = static_cast<double>(duration.count());
  const double size = std::abs(nanoseconds);
  if (size < 999.5) return format_scaled(nanoseconds, "ns");
  if (size < 999.95e3) return format_scaled(nanoseconds / 1e3, "µs");
  if (size < 999.95e6) return format_scaled(nanoseconds / 1e6, "ms");
  if (size < 120e9) return format_scaled(nanoseconds / 1e9, "s");
  if (size < 7200e9) return format_scaled(nanoseconds / 60e9, "min");
  return format_scaled(nanoseconds / 3600e9, "h");
}

}  // namespace tutti
