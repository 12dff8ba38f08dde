// options.cpp: the caller's wishes and the launcher's word, made one.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <tutti/error.hpp>

#include "rendezvous/connect.hpp"

namespace tutti::rendezvous {
namespace {

constexpr std::string_view env_scheme = "env://", tcp_scheme = "tcp://", file_scheme = "file://";

// Rank and size as the caller gave them take the place of the variables of the same meaning.
Environment with_options(const InitOptions& options, const Environment& environment) {
  Environment changed = environment;
  if (options.rank >= 0) changed.set("RANK", fmt::format("{}", options.rank));
  if (options.size >= 0) changed.set("WORLD_SIZE", fmt::format("{}", options.size));
  return changed;
}

void check_agreement(const InitOptions& options, const Detected& detected) {
  const bool rank_differs = options.rank >= 0 && options.rank != detected.rank;
  const bool size_differs = options.size >= 0 && options.size != detected.size;
  if (!rank_differs && !size_differs) return;
  throw InvalidArgument(
      fmt::format("init was asked for rank {} of {}, but {} started this process as rank {} of {}; leave "
                  "rank and size out, or give an init_method as well",
                  options.rank, options.size, detected.launcher, detected.rank, detected.size));
}

// Who I am, for a meeting point that the caller names: the options, else the launcher.
Detected read_identity(const InitOptions& options, const Environment& environment) {
  if (options.rank >= 0 || options.size >= 0) {
    const Environment changed = with_options(options, environment);
    const auto rank = changed.integer("RANK", 0, 1 << 24), size = changed.integer("WORLD_SIZE", 1, 1 << 24);
    if (!rank || !size || *rank >= *size) {
      throw InvalidArgument(fmt::format("init_method {} with rank {} of {}: give both, with 0 ≤ rank < size",
                                        options.init_method, rank ? fmt::to_string(*rank) : "(none)",
                                        size ? fmt::to_string(*size) : "(none)"));
    }
    return {.launcher = "by hand", .rank = static_cast<int>(*rank), .size = static_cast<int>(*size)};
  }
  // MASTER_ADDR is not needed here, so half of env:// is no mistake.
  Environment changed = environment;
  if (!environment.has("MASTER_ADDR")) changed.set("MASTER_ADDR", "unused");
  Detected detected = detect(changed);
  if (detected.launcher == "alone") {
    throw InvalidArgument(fmt::format(
        "init_method {} needs rank and size: give them as options, or set RANK and WORLD_SIZE", options.init_method));
  }
  return detected;
}

wire::HostPort read_tcp(std::string_view method) {
  const auto where = wire::HostPort::parse(method.substr(tcp_scheme.size()));
  if (where.port == 0)
    throw InvalidArgument(fmt::format("init_method {}: port 0 is no place to meet; name a port", method));
  return where;
}

std::string read_path(std::string_view method) {
  const std::string path(method.substr(file_scheme.size()));
  if (!path.starts_with('/')) {
    throw InvalidArgument(fmt::format("init_method {}: the path must be absolute, as in file:///tmp/meeting", method));
  }
  return path;
}

}  // namespace

Detected read_options(const InitOptions& options, const Environment& environment) {
  const std::string_view method = options.init_method;
  if (options.rank < -1 || options.size < -1 || options.size == 0) {
    throw InvalidArgument(
        fmt::format("init was asked for rank {} of {}: ranks run from 0 to size − 1; −1 means that the "
                    "launcher tells",
                    options.rank, options.size));
  }
  if (method.starts_with(tcp_scheme)) {
    Detected detected = read_identity(options, environment);
    detected.meeting = FixedAddress{read_tcp(method)};
    return detected;
  }
  if (method.starts_with(file_scheme)) {
    Detected detected = read_identity(options, environment);
    detected.meeting = RecordInFile{read_path(method)};
    return detected;
  }
  if (method == env_scheme) return read_plain_environment(with_options(options, environment));
  if (!method.empty()) {
    throw InvalidArgument(
        fmt::format("init_method \"{}\" is unknown; there are env://, tcp://host:port and file:///path, "
                    "or nothing, to detect the launcher",
                    method));
  }
  Detected detected = detect(environment);
  const bool by_hand = detected.launcher == "by hand" || detected.launcher == "alone";
  if (by_hand && (options.rank >= 0 || options.size >= 0)) detected = detect(with_options(options, environment));
  check_agreement(options, detected);
  return detected;
}

}  // namespace tutti::rendezvous
