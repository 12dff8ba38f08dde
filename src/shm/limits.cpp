// limits.cpp: reads the limits of memory from /proc, the control groups and the shell.
// SPDX-License-Identifier: Apache-2.0
#include "shm/limits.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

namespace tutti::shm {
namespace {

constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();

// The number a text begins with, after blanks.
std::optional<std::uint64_t> leading_number(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.begin(), text.end(), value);
  if (error != std::errc() || end == text.begin()) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> number_in(const ReadFile& read, const std::string& path) {
  const auto text = read(path);
  return text ? leading_number(*text) : std::nullopt;  // "max" is no number
}

// The field of memory.stat, 0 where it is missing.
std::uint64_t statistic(std::string_view stat, std::string_view field) {
  for (const std::string_view line : split(stat, '\n')) {
    if (line.starts_with(field) && line.substr(field.size()).starts_with(' ')) {
      return leading_number(line.substr(field.size())).value_or(0);
    }
  }
  return 0;
}

// What one control group leaves; nothing where it has no limit.
std::optional<std::uint64_t> left_in(const ReadFile& read, const std::string& folder, int version) {
  const bool second = version == 2;
  // memory.high does not kill, but above it every allocation is slowed down to a crawl.
  const std::uint64_t limit =
      std::min(number_in(read, folder + (second ? "/memory.max" : "/memory.limit_in_bytes")).value_or(unlimited),
               second ? number_in(read, folder + "/memory.high").value_or(unlimited) : unlimited);
  if (limit > unlimited / 4) return std::nullopt;  // version 1 says "none" with a number near 2^63
  const std::uint64_t use =
      number_in(read, folder + (second ? "/memory.current" : "/memory.usage_in_bytes")).value_or(0);
  const std::uint64_t droppable =
      statistic(read(folder + "/memory.stat").value_or(""), second ? "inactive_file" : "total_inactive_file");
  const std::uint64_t needed = use - std::min(use, droppable);
  return limit - std::min(limit, needed);
}

}  // namespace

std::optional<std::uint64_t> meminfo_bytes(std::string_view meminfo, std::string_view field) {
  for (const std::string_view line : split(meminfo, '\n')) {
    if (line.starts_with(field) && line.substr(field.size()).starts_with(':')) {
      const auto kib = leading_number(line.substr(field.size() + 1));
      if (kib) return *kib * 1024;
    }
  }
  return std::nullopt;
}

Allowance memory_left(const ReadFile& read) {
  Allowance least;
  const auto consider = [&](std::optional<std::uint64_t> bytes, std::string source) {
    if (bytes && *bytes < least.bytes) least = {.bytes = *bytes, .source = std::move(source)};
  };
  consider(meminfo_bytes(read("/proc/meminfo").value_or(""), "MemAvailable"), "the machine's free memory");
  const ControlGroups groups = control_groups("memory", read);
  for (const std::string& folder : groups.folders) {
    consider(left_in(read, folder, groups.version), fmt::format("the control group {}", folder));
  }
  return least;
}

std::uint64_t memory_of_machine(const ReadFile& read) {
  const auto total = meminfo_bytes(read("/proc/meminfo").value_or(""), "MemTotal");
  if (total) return *total;
  return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

Allowance address_space_left(const ReadFile& read) {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  const auto pages = leading_number(read("/proc/self/statm").value_or("")).value_or(0);
  const std::uint64_t used = pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return {.bytes = limit.rlim_cur - std::min<std::uint64_t>(limit.rlim_cur, used),
          .source = "the limit of address space (ulimit -v)"};
}

Allowance file_bytes_max() {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  return {.bytes = limit.rlim_cur, .source = "the limit of file sizes (ulimit -f)"};
}

}  // namespace tutti::shm
