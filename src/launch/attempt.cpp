// attempt.cpp: ids and secrets; one start after the other.
// SPDX-License-Identifier: Apache-2.0
#include "launch/attempt.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

#include <tutti/error.hpp>

#include "base/hash.hpp"
#include "wire/loopback.hpp"

namespace tutti::launch {
namespace {

// Reports each message once. Runs on the store's thread, which ranks wait for: a full stderr does not stop it.
std::function<void(const std::string&)> tell_troubles(std::string_view name) {
  return [name = std::string(name), told = std::vector<std::string>()](const std::string& sentence) mutable {
    constexpr std::size_t told_max = 8;
    pollfd room{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
    if (told.size() >= told_max || std::ranges::find(told, sentence) != told.end() || poll(&room, 1, 0) != 1) return;
    told.push_back(sentence);
    const std::string line = fmt::format("{}: {}\n", name, sentence);
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
  };
}

}  // namespace

std::string fresh_job_id() {
  std::array<std::byte, 8> random;
  wire::fill_random(random);
  std::string id;
  for (const std::byte byte : random) id += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  return id;
}

std::string common_job_id(const Placement& placement) {
  return fmt::format("{:016x}", Hash().add(static_cast<std::uint64_t>(placement.master_port)).value());
}

wire::Secret choose_secret(const RunOptions& options, const Environment& environment, int restart) {
  const std::string given = environment.get("TUTTI_SECRET").value_or("");
  if (!given.empty() && restart == 0) {
    try {
      return wire::Secret::from_hex(given);
    } catch (const InvalidArgument& error) {
      throw UsageError(fmt::format("TUTTI_SECRET: {}", error.what()));
    }
  }
  if (options.nodes > 1)
    throw UsageError(
        "--nnodes: ranks on several nodes need a secret in common; set TUTTI_SECRET to the same 64 hexadecimal digits "
        "on every "
        "node (openssl rand -hex 32 makes some)");
  return wire::make_secret();
}

void Meeting::describe_in(Placement& placement) const {
  placement.secret = secret.hex();
  placement.job = job;
  if (master_port.port != 0) placement.master_port = master_port.port;
  if (store) placement.store = store->address().text();
}

wire::Encryption encryption_of_ranks(const RunOptions& options, const Environment& environment) {
  Environment of_ranks = environment;
  for (const auto& [name, value] : options.variables) of_ranks.set(name, value);
  return wire::encryption_from(of_ranks);
}

void serve_store(Meeting& meeting, wire::Encryption encryption, std::string_view name) {
  wire::require_loopback();
  meeting.store = std::make_unique<TcpStoreServer>(
      TcpStoreServer::Options{.secret = meeting.secret, .encryption = encryption, .on_trouble = tell_troubles(name)});
}

int run_attempts(std::string_view name, int restarts, const std::function<JobEnd(int restart)>& run_once) {
  int failures = 0;
  for (int restart = 0;; ++restart) {
    const JobEnd end = run_once(restart);
    if (end.may_grow) {
      fmt::print(stderr, "{}: starting the job again with it\n", name);
      continue;
    }
    if (!end.is_failure || failures == restarts) return end.status;
    fmt::print(stderr, "{}: starting the job again, restart {} of {}\n", name, ++failures, restarts);
  }
}

}  // namespace tutti::launch
