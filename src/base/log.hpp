// log.hpp: log lines on stderr, one write(2) each so that the lines of many ranks never mix. Never blocks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/environment.hpp"

namespace tutti {

/// A value that is passed down, never global. May be used from several threads at once if its sink may.
class Log {
 public:
  enum class Level : std::uint8_t { error, warn, info, debug };
  /// Takes a whole line, newline included.
  using Sink = std::function<void(std::string_view line)>;

  /// Lines begin with `who`: "tutti", or "tutti[3]" for rank 3. Without a sink they go to stderr.
  explicit Log(Level level = Level::warn, std::string who = "tutti", Sink sink = {});
  /// The level from TUTTI_LOG=error|warn|info|debug (InvalidArgument for anything else); without it that of the process's
  /// destination, which is `warn` unless redirect() was called.
  static Level level_from(const Environment& environment);
  /// Has the lines of this process that have no sink of their own go to `sink` instead of stderr, for a host program that keeps a log,
  /// such as Python's logging. `sink` may be called from any thread and must not block. An empty sink: back to stderr and `warn`.
  static void redirect(Level level, Sink sink);

  /// The same log with the prefix of one rank.
  [[nodiscard]] Log for_rank(int rank) const { return Log(level_, fmt::format("tutti[{}]", rank), sink_); }
  [[nodiscard]] Level level() const { return level_; }
  [[nodiscard]] bool shows(Level level) const { return level <= level_; }

  template <class... Args>
  void error(fmt::format_string<Args...> text, Args&&... args) const {
    if (shows(Level::error)) write(Level::error, fmt::format(text, std::forward<Args>(args)...));
  }
  template <class... Args>
  void warn(fmt::format_string<Args...> text, Args&&... args) const {
    if (shows(Level::warn)) write(Level::warn, fmt::format(text, std::forward<Args>(args)...));
  }
  template <class... Args>
  void info(fmt::format_string<Args...> text, Args&&... args) const {
    if (shows(Level::info)) write(Level::info, fmt::format(text, std::forward<Args>(args)...));
  }
  template <class... Args>
  void debug(fmt::format_string<Args...> text, Args&&... args) const {
    if (shows(Level::debug)) write(Level::debug, fmt::format(text, std::forward<Args>(args)...));
  }

 private:
  void write(Level level, std::string_view text) const;

  Level level_;
  std::string who_;
  Sink sink_;
};

std::string_view name_of(Log::Level level);

}  // namespace tutti
