// log.cpp: makes one line of a message and hands it over in one piece.
// SPDX-License-Identifier: Apache-2.0
#include "base/log.hpp"

#include <array>
#include <memory>
#include <mutex>

#include <tutti/error.hpp>

#include "base/line_writer.hpp"
#include "base/printable.hpp"

namespace tutti {
namespace {

constexpr std::array<std::string_view, 4> level_names = {"error", "warn", "info", "debug"};

struct Destination {
  Log::Level level = Log::Level::warn;
  Log::Sink sink;
};

struct SharedDestination {
  std::mutex mutex;
  std::shared_ptr<const Destination> current = std::make_shared<const Destination>();
};

SharedDestination& shared_destination() {
  static auto* const instance = new SharedDestination;  // threads may log while static objects are destroyed
  return *instance;
}

std::shared_ptr<const Destination> destination() {
  const std::lock_guard guard(shared_destination().mutex);
  return shared_destination().current;
}

void write_to_destination(std::string_view line) {
  const auto target = destination();
  if (target->sink) {
    target->sink(line);
  } else {
    LineWriter::of_stderr().write(line);
  }
}

}  // namespace

Log::Log(Level level, std::string who, Sink sink)
    : level_(level), who_(std::move(who)), sink_(sink ? std::move(sink) : write_to_destination) {}

Log::Level Log::level_from(const Environment& environment) {
  const auto text = environment.get("TUTTI_LOG");
  if (!text || text->empty()) return destination()->level;
  for (std::size_t i = 0; i < level_names.size(); ++i) {
    if (*text == level_names[i]) return static_cast<Level>(i);
  }
  throw InvalidArgument(fmt::format(
      "environment variable TUTTI_LOG=\"{}\" cannot be used: it must be error, warn, info or debug", *text));
}

void Log::redirect(Level level, Sink sink) {
  const Level kept = sink ? level : Level::warn;
  auto next = std::make_shared<const Destination>(Destination{.level = kept, .sink = std::move(sink)});
  const std::lock_guard guard(shared_destination().mutex);
  shared_destination().current = std::move(next);
}

void Log::write(Level level, std::string_view text) const {
  std::string line = fmt::format("{} {}: ", who_, name_of(level));
  line += printable_text(text, "\t\n");  // it may come from a peer
  line += '\n';
  sink_(line);
}

std::string_view name_of(Log::Level level) { return level_names[static_cast<std::size_t>(level)]; }

}  // namespace tutti
