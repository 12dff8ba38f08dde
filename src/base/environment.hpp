// environment.hpp: the environment variables of a process, as a value that tests can make up.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <tutti/clock.hpp>

namespace tutti {

class Environment {
 public:
  using Variables = std::map<std::string, std::string, std::less<>>;

  Environment() = default;
  explicit Environment(Variables variables) : variables_(std::move(variables)) {}
  /// Environment{{"RANK", "3"}, {"WORLD_SIZE", "4"}}
  Environment(std::initializer_list<Variables::value_type> variables) : variables_(variables) {}
  Environment(const Environment&) = default;
  Environment& operator=(const Environment&) = default;
  Environment(Environment&&) = default;
  Environment& operator=(Environment&&) = default;
  ~Environment();  // wipes the secret
  /// The environment of this process. Only the public API calls this; below it, environments are passed in.
  static Environment of_process();
  /// Removes the secret from the environment of this process, where /proc and core files would show it, and keeps it
  /// where they do not: of_process() still returns it. Programs that this process starts do not inherit it: they are no
  /// ranks.
  static void conceal_secret_of_process();

  [[nodiscard]] std::optional<std::string> get(std::string_view name) const;
  [[nodiscard]] bool has(std::string_view name) const { return variables_.contains(name); }
  [[nodiscard]] const Variables& variables() const { return variables_; }
  void set(std::string name, std::string value) { variables_.insert_or_assign(std::move(name), std::move(value)); }

  /// The typed getters: nothing where the variable is missing or empty; InvalidArgument naming the variable, its value
  /// and what is accepted where it cannot be read.
  [[nodiscard]] std::optional<std::int64_t> integer(
      std::string_view name, std::int64_t lowest = std::numeric_limits<std::int64_t>::min(),
      std::int64_t highest = std::numeric_limits<std::int64_t>::max()) const;
  [[nodiscard]] std::optional<Duration> duration(std::string_view name) const;
  [[nodiscard]] std::optional<std::int64_t> bytes(std::string_view name) const;
  /// 1, true, yes, on; 0, false, no, off.
  [[nodiscard]] std::optional<bool> flag(std::string_view name) const;

 private:
  Variables variables_;
};

/// The variable that holds the job's secret.
inline constexpr std::string_view secret_variable = "TUTTI_SECRET";

/// Each parser reads the whole text or returns nothing.
std::optional<std::int64_t> parse_integer(std::string_view text);
/// "4096", "64K", "1M", "2GiB", "1.5G": powers of 1024, a trailing B or iB is allowed.
std::optional<std::int64_t> parse_bytes(std::string_view text);
/// "30s", "250ms", "10us", "5ns", "2m", "1h", "1.5s"; a plain number is seconds.
std::optional<Duration> parse_duration(std::string_view text);

/// "64 KiB", "1.5 GiB", "17 B".
std::string format_bytes(std::int64_t bytes);
/// "30 s", "1.5 ms", "2 h".
std::string format_duration(Duration duration);

}  // namespace tutti
