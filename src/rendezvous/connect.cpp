// connect.cpp: detects the launcher, finds the store, checks membership, determines node and local rank.
// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/connect.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <variant>

#include <tutti/error.hpp>

#include "base/environment.hpp"
#include "base/log.hpp"
#include "rendezvous/membership.hpp"
#include "rendezvous/place.hpp"
#include "rendezvous/secret_source.hpp"
#include "rendezvous/store_access.hpp"
#include "rendezvous/store_connector.hpp"
#include "store/memory_store.hpp"
#include "wire/loopback.hpp"

namespace tutti::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// No socket, no file, and a secret that no other process knows.
std::unique_ptr<Connector> connect_alone(const Detected& detected, const HostIdentity& host) {
  const NodeTable table{.node_of_rank = {0}};
  return std::make_unique<StoreConnector>(
      StoreConnector::Parts{.place = find_place(detected, table, host.name),
                            .description = detected.launcher + ": a group of one, without a meeting",
                            .meeting_host = "",
                            .store = memory_store(),
                            .secret = wire::make_secret()});
}

// Another rank 0 that overwrote our record leads some ranks to another store: tell both.
void check_for_another_root(Met& met, Membership& membership, const MemberRecord& record, const Surroundings& around) {
  if (!met.board) return;
  const auto found_record = met.board->overwritten_by();
  if (!found_record) return;
  const std::string why = fmt::format(
      "rank 0 of {} was started twice: {} and {}; give every process a rank of its own, "
      "and end what is left of an earlier run",
      record.size, record.who(), found_record->writer);
  membership.spoil(why);
  const TimePoint soon = deadline_after(around.clock.now(), seconds(1));
  const StoreGuard guard{.secret = met.secret, .encryption = wire::encryption_from(around.environment)};
  try {
    const auto other = join_store(found_record->where, guard, soon);
    Membership(*other, record, around.clock, soon).spoil(why);
  } catch (const Error&) {
    // The other rank 0 has left already, or is not of this job.
  }
  throw RendezvousError(why);
}

// A rank that waits for others learns at once that one of them may have been rejected.
void tell_troubles(const Met& met, const Log& log) {
  if (!met.troubles) return;
  for (const std::string& sentence : met.troubles->take_new()) log.warn("waiting at {}: {}", met.where, sentence);
}

NodeTable check_membership(Met& met, const MemberRecord& record, const Surroundings& around, TimePoint deadline) {
  const Clock& clock = around.clock;
  Membership membership(*met.store, record, clock, deadline);
  try {
    membership.sign_in();
    for (;;) {
      const TimePoint now = clock.now();
      if (auto table = membership.verdict(std::min(deadline, deadline_after(now, milliseconds(250)))))
        return *std::move(table);
      check_for_another_root(met, membership, record, around);
      tell_troubles(met, around.log);
      if (clock.now() >= deadline) membership.give_up(met.where, met.troubles ? met.troubles->all() : "");
    }
  } catch (const Error&) {
    if (met.board) met.board->clear();
    if (met.host) {
      const TimePoint now = clock.now();
      membership.linger(std::clamp(deadline, deadline_after(now, milliseconds(500)), deadline_after(now, seconds(2))));
    }
    throw;
  }
}

std::string describe(const Detected& detected, const Met& met) {
  return fmt::format("{}: met at {}; secret from {}", detected.launcher, met.where, met.secret_source);
}

// Rank 0 serves the store and is its first client. The others need loopback if the store is reached through it.
bool needs_loopback(const Detected& detected, const Environment& environment) {
  const auto is_here = [](const wire::HostPort& where) {
    const auto address = wire::Address::from_numeric(where.host, 1);
    return where.host == "localhost" || (address && address->is_loopback());
  };
  if (detected.rank == 0 || detected.on_one_node()) return true;
  if (const auto* point = std::get_if<LauncherStore>(&detected.meeting)) return is_here(point->where);
  if (const auto* point = std::get_if<FixedAddress>(&detected.meeting)) return is_here(point->where);
  if (std::holds_alternative<RecordInFile>(detected.meeting)) return !given_secret(environment);
  return std::holds_alternative<RecordInPrivateFile>(detected.meeting);
}

std::unique_ptr<Connector> connect_to_others(Detected detected, const HostIdentity& host,
                                             const Surroundings& surroundings, TimePoint deadline) {
  // Before any rank waits: a loopback interface that is down does not come up by itself.
  if (needs_loopback(detected, surroundings.environment)) wire::require_loopback();
  const Log& log = surroundings.log;
  const TimePoint started = surroundings.clock.now();
  log.info("started by {} as rank {} of {} on host {}", detected.launcher, detected.rank, detected.size, host.name);
  Met met = meet(detected, surroundings, deadline);
  log.debug("reached the rendezvous at {}; the secret is from {}", met.where, met.secret_source);
  const MemberRecord record{.rank = detected.rank,
                            .size = detected.size,
                            .node = host.node,
                            .machine = host.machine,
                            .host = host.name,
                            .pid = getpid(),
                            .token = make_nonce()};
  const NodeTable table = check_membership(met, record, surroundings, deadline);
  log.info("all {} ranks met at {} after {}, {}", detected.size, met.where,
           format_duration(surroundings.clock.now() - started),
           table.one_machine ? "all on one machine" : "on several machines");
  if (met.board) met.board->clear();
  if (met.secret_serves_one_machine && !table.one_machine) throw_no_secret("the ranks are on several machines");
  if (surroundings.environment.has("TUTTI_HOST_ID")) {
    detected.local_rank = detected.local_size = detected.node_rank = detected.node_count = std::nullopt;
  }
  return std::make_unique<StoreConnector>(StoreConnector::Parts{.place = find_place(detected, table, host.name),
                                                                .description = describe(detected, met),
                                                                .meeting_host = met.meeting_host,
                                                                .store = std::move(met.store),
                                                                .secret = met.secret,
                                                                .host = std::move(met.host)});
}

template <class Kind>
[[noreturn]] void rethrow_naming(const Detected& detected, const Kind& error) {
  throw Kind(fmt::format("rank {} of {}: {}", detected.rank, detected.size, error.what()));
}

}  // namespace

std::unique_ptr<Connector> connect(const InitOptions& options, const Surroundings& surroundings) {
  const Detected detected = read_options(options, surroundings.environment);
  return connect(detected, surroundings, deadline_after(surroundings.clock.now(), options.timeout));
}

std::unique_ptr<Connector> connect(const Detected& detected, const Surroundings& surroundings, TimePoint deadline) {
  const HostIdentity host = read_host_identity(surroundings.environment);
  if (detected.size == 1) return connect_alone(detected, host);
  try {
    return connect_to_others(detected, host, surroundings, deadline);
  } catch (const AuthenticationError& error) {
    rethrow_naming(detected, error);
  } catch (const RendezvousError& error) {
    rethrow_naming(detected, error);
  } catch (const Timeout& error) {
    rethrow_naming(detected, RendezvousError(error.what()));
  }
}

}  // namespace tutti::rendezvous

namespace tutti {
namespace {

// How often this process has met others before. Counted per job: all its ranks call it equally often, although a rank may also be
// alone in between, or be a rank of another job before.
std::uint64_t count_meeting(const std::string& job) {
  static std::mutex mutex;
  static std::map<std::string, std::uint64_t> meetings;
  const std::lock_guard lock(mutex);
  return meetings[job]++;
}

}  // namespace

std::unique_ptr<Connector> connect(const InitOptions& options) {
  if (options.mpi_communicator) throw InvalidArgument("connect: a communicator of MPI is for init()");
  const Environment environment = Environment::of_process();
  const rendezvous::Detected detected = rendezvous::read_options(options, environment);
  auto connector =
      rendezvous::connect(options, {.environment = environment,
                                    .clock = steady_clock(),
                                    .earlier_connects = detected.size == 1 ? 0 : count_meeting(detected.job),
                                    .log = Log(Log::level_from(environment)).for_rank(detected.rank)});
  if (detected.size > 1) Environment::conceal_secret_of_process();  // no longer needed; a process alone did not use it
  return connector;
}

}  // namespace tutti
