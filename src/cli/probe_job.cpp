// probe_job.cpp: what init would do here: the launcher it would find, where it would meet, what it would bind to, and the
// table it would choose algorithms by. Nothing is made, and nobody contacted but this process, over loopback.
// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>

#include <algorithm>
#include <variant>

#include <fmt/format.h>

#include <tutti/error.hpp>

#include "cli/probes.hpp"
#include "cli/table_file.hpp"
#include "rendezvous/detect.hpp"
#include "rendezvous/record.hpp"
#include "wire/interfaces.hpp"
#include "wire/loopback.hpp"
#include "wire/secret.hpp"

namespace tutti::cli {

namespace {

using namespace rendezvous;

struct DescribeRendezvous {
  std::string operator()(const NoRendezvous&) const { return "none: no socket, no file"; }
  std::string operator()(const LauncherStore& point) const { return "the launcher's store at " + point.where.text(); }
  std::string operator()(const FixedAddress& point) const {
    return fmt::format("rank 0 listens at {} (MASTER_ADDR, MASTER_PORT)", point.where.text());
  }
  std::string operator()(const PortWindow& point) const {
    return fmt::format("rank 0 listens on {}, at one of the ports {} to {}", point.host, point.first_port,
                       point.first_port + point.ports - 1);
  }
  std::string operator()(const RecordInFile& point) const { return "a record in " + point.path; }
  std::string operator()(const RecordInPrivateFile& point) const {
    return fmt::format("a record in the user's own folder, {}", point.name);
  }
  std::string operator()(const RecordInAgentStore& point) const {
    return "a record in the store of torchrun's agent at " + point.where.text();
  }
  std::string operator()(const RecordInPmi&) const { return "a record in PMI's key-value space"; }
  std::string operator()(const RecordInPmix&) const { return "a record in PMIx's key-value space"; }
  std::string operator()(const RecordOnBoard& point) const { return "a record on " + point.board->describe(); }
};

bool brings_its_own_secret(const RendezvousPoint& meeting) {
  return std::holds_alternative<RecordInPmi>(meeting) || std::holds_alternative<RecordInPmix>(meeting);
}

// Only looked at: a doctor makes no key file, and never shows a secret.
std::string describe_secret(const Environment& environment, const RendezvousPoint& meeting) {
  if (const auto given = environment.get("TUTTI_SECRET"); given && !given->empty()) {
    static_cast<void>(wire::Secret::from_hex(*given));
    return "TUTTI_SECRET";
  }
  if (std::holds_alternative<NoRendezvous>(meeting)) return "none needed";
  if (brings_its_own_secret(meeting)) return "made by rank 0, in the record";
  const auto path = wire::default_key_path(environment);
  struct stat status {};
  const bool there = stat(path.c_str(), &status) == 0;
  if (there && (status.st_mode & 077) != 0) {
    throw AuthenticationError(fmt::format("the key file {} can be read by others; chmod 600 it", path.string()));
  }
  return fmt::format("the key file {}{}; serves one machine", path.string(), there ? "" : " (made at the first init)");
}

std::optional<wire::Address> meeting_address(const Environment& environment) {
  try {
    const RendezvousPoint meeting = detect(environment).meeting;
    const auto* fixed = std::get_if<FixedAddress>(&meeting);
    return fixed == nullptr ? std::nullopt : wire::Address::from_numeric(fixed->where.host, fixed->where.port);
  } catch (const Error&) {
    return std::nullopt;  // probe_launcher says what is wrong
  }
}

}  // namespace

NetworkFacts probe_network(const Environment& environment) {
  NetworkFacts facts{.wish = environment.get("TUTTI_INTERFACE").value_or(""),
                     .identity = wire::network_identity(),
                     .loopback_problem = wire::loopback_problem()};
  try {
    const auto interfaces = wire::list_interfaces();
    for (const wire::Interface& entry : interfaces) {
      facts.interfaces.push_back({.name = entry.name,
                                  .address = entry.address.host(),
                                  .prefix_bits = entry.prefix_bits,
                                  .up = entry.up,
                                  .loopback = entry.address.is_loopback(),
                                  .internal = wire::is_virtual_interface(entry.name)});
    }
    wire::BindWish wish{.wish = facts.wish, .meeting_point = meeting_address(environment)};
    if (wish.meeting_point) wish.route = wire::route_to(*wish.meeting_point);
    facts.used_between_hosts = wire::choose_address(interfaces, wish).host();
    facts.used_on_one_host = facts.wish.empty() ? wire::Address::loopback().host() : facts.used_between_hosts;
  } catch (const Error& error) {
    facts.problem = error.what();
  }
  return facts;
}

LauncherFacts probe_launcher(const Environment& environment) {
  LauncherFacts facts;
  try {
    const Detected detected = detect(environment);
    facts.launcher = detected.launcher;
    facts.rank = detected.rank;
    facts.size = detected.size;
    // A group of one meets nobody, whatever the launcher offers.
    const RendezvousPoint meeting = detected.size == 1 ? NoRendezvous{} : detected.meeting;
    facts.meeting = std::visit(DescribeRendezvous{}, meeting);
    facts.secret = describe_secret(environment, meeting);
  } catch (const Error& error) {
    facts.problem = error.what();
  }
  return facts;
}

TableFacts probe_table(const Environment& environment) {
  TableFacts facts{.path = environment.get("TUTTI_TABLE").value_or("")};
  try {
    const Table table = read_table(environment);
    facts.rows = static_cast<int>(table.rows.size());
    for (const SharedLimit& limit : shared_limits) {
      const std::int64_t value = table.shared.*limit.value;
      if (value != SharedLimits{}.*limit.value) facts.limits.push_back(fmt::format("{} {}", limit.name, value));
    }
  } catch (const Error& error) {
    facts.problem = error.what();
  }
  return facts;
}

}  // namespace tutti::cli
