// log.cpp: makes one line of a message and hands it over in one piece.
// SPDX-License-Identifier: Apache-2.0
#include "base/log.hpp"

#include <array>

#include <tutti/error.hpp>

#include "base/line_writer.hpp"
#include "base/printable.hpp"

namespace tutti {
namespace {

constexpr std::array<std::string_view, 4> level_names = {"error", "warn", "info", "debug"};

void write_to_stderr(std::string_view line) { LineWriter::of_stderr().write(line); }

}  // namespace

Log::Log(Level level, std::string who, Sink sink)
    : level_(level), who_(std::move(who)), sink_(sink ? std::move(sink) : write_to_stderr) {}

Log::Level Log::level_from(const Environment& environment) {
  const auto text = environment.get("TUTTI_LOG");
  if (!text || text->empty()) return Level::warn;
  for (std::size_t i = 0; i < level_names.size(); ++i) {
    if (*text == level_names[i]) return static_cast<Level>(i);
  }
  throw InvalidArgument(fmt::format(
      "environment variable TUTTI_LOG=\"{}\" cannot be used: it must be error, warn, info or debug", *text));
}

void Log::write(Level level, std::string_view text) const {
  std::string line = fmt::format("{} {}: ", who_, name_of(level));
  line += printable_text(text, "\t\n");  // it may come from a peer
  line += '\n';
  sink_(line);
}

std::string_view name_of(Log::Level level) { return level_names[static_cast<std::size_t>(level)]; }

}  // namespace tutti
