// meeting.cpp: how ranks meet: at the launcher's store, at an address or ports known beforehand, or by a record of rank 0.
// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/meeting.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <thread>

#include <tutti/error.hpp>

#include "rendezvous/file_board.hpp"
#include "rendezvous/place.hpp"
#include "rendezvous/rendezvous.hpp"
#include "rendezvous/store_access.hpp"
#include "store/prefix_store.hpp"
#include "wire/interfaces.hpp"

namespace tutti::rendezvous {

using std::chrono::milliseconds;
using std::chrono::seconds;

Met make_met(const FoundSecret& secret, std::shared_ptr<Store> store, const wire::Address& at, std::string_view how) {
  return {.store = std::move(store),
          .secret = secret.secret,
          .where = fmt::format("rank 0's store at {}{}{}", at.text(), how.empty() ? "" : ", found by ", how),
          .meeting_host = at.host(),
          .secret_source = secret.source,
          .secret_serves_one_machine = secret.serves_one_machine};
}

wire::Address Rendezvous::reachable_address(std::optional<wire::Address> meeting_point) const {
  wire::BindWish wish{.wish = around_.environment.get("TUTTI_INTERFACE").value_or(""),
                      .meeting_point = meeting_point,
                      .route = meeting_point ? wire::route_to(*meeting_point) : std::nullopt};
  if (detected_.on_one_node() && !meeting_point) wish.meeting_point = wire::Address::loopback();
  return wire::choose_address(wire::list_interfaces(), wish);
}

// The key file is valid for ranks on one machine, so it is used if rank 0's address is one of this machine's.
FoundSecret Rendezvous::secret_for(const std::vector<wire::Address>& addresses) const {
  if (auto given = given_secret(around_.environment)) return *std::move(given);
  if (!std::ranges::any_of(addresses, is_local)) {
    throw_no_secret(fmt::format("{} is another machine", addresses.front().host()));
  }
  return given_or_key_file_secret(around_.environment);
}

Met Rendezvous::operator()(const NoRendezvous&) const {
  throw RendezvousError(
      "the launcher names no place to meet; give init_method \"tcp://host:port\" or \"file:///path\"");
}

Met Rendezvous::operator()(const LauncherStore& point) const {
  const auto addresses = wire::resolve(point.where, deadline_);
  const FoundSecret secret = secret_for(addresses);
  auto store = join_store(point.where, guard_by(secret), deadline_);
  // That store outlives this call, and perhaps this attempt at the job: keys of an earlier attempt must not be found.
  auto own = prefix_store(std::move(store), fmt::format("job/{}/{}", detected_.job, around_.earlier_connects));
  Met met = make_met(secret, std::move(own), addresses.front());
  met.where = "the launcher's store at " + point.where.text();
  return met;
}

Met Rendezvous::operator()(const FixedAddress& point) const {
  const auto addresses = wire::resolve(point.where, deadline_);
  const FoundSecret secret = secret_for(addresses);
  if (is_root()) return serve_at(point, addresses, secret);
  return join_at(point, addresses.front(), secret);
}

// The server of an earlier init of this job may still be there: it has another name, or ends while we talk to it.
Met Rendezvous::join_at(const FixedAddress& point, const wire::Address& address, const FoundSecret& secret) const {
  const TimePoint patience = within(seconds(2));
  for (std::exception_ptr why;;) {
    try {
      auto store = join_store(point.where, guard_by(secret), deadline_);
      if (store->get(nonce_key, deadline_) == meeting_name()) return make_met(secret, std::move(store), address);
    } catch (const AuthenticationError&) {
      const TimePoint now = around_.clock.now();
      if (!why || now < deadline_)
        why = std::current_exception();  // of an attempt that was cut short one learns nothing
      if (now >= patience) std::rethrow_exception(why);
    } catch (const RendezvousError&) {
      if (around_.clock.now() >= deadline_) throw;
    }
    std::this_thread::sleep_for(milliseconds(20));
  }
}

Met Rendezvous::serve_at(const FixedAddress& point, const std::vector<wire::Address>& addresses,
                         const FoundSecret& secret) const {
  const auto mine = std::ranges::find_if(addresses, is_local);
  if (mine == addresses.end()) {
    throw RendezvousError(
        fmt::format("rank 0 is to be met at {} ({}), which is no address of this machine; start rank 0 "
                    "there, or name this machine (MASTER_ADDR)",
                    point.where.text(), addresses.front().host()));
  }
  std::string why;
  for (const TimePoint patience = within(seconds(5));;) {
    try {
      ServedStore served = serve_store(*mine, guard_by(secret), deadline_);
      Met met = make_met(secret, std::move(served.store), served.address);
      met.store->set(nonce_key, meeting_name(), deadline_);
      met.host = std::move(served.host);
      met.troubles = std::move(served.troubles);
      return met;
    } catch (const RendezvousError& error) {
      why = error.what();
    }
    // Perhaps another rank 0 of this job, in which case the membership check names both; or a server that is about to
    // end.
    try {
      auto store = join_store(*mine, guard_by(secret), within(milliseconds(300)));
      if (store->get(nonce_key, within(milliseconds(300))) == meeting_name())
        return make_met(secret, std::move(store), *mine);
      why = fmt::format("port {} of {} still serves an earlier meeting", point.where.port, mine->host());
    } catch (const AuthenticationError&) {
      why = fmt::format("port {} of {} is held by something that is not of this job", point.where.port, mine->host());
    } catch (const Error&) {
      // The server ended meanwhile: try again.
    }
    if (around_.clock.now() >= patience) {
      throw RendezvousError(
          fmt::format("{}; end it (`ss -tlnp 'sport = :{}'` names it), or meet at another port "
                      "(MASTER_PORT)",
                      why, point.where.port));
    }
    std::this_thread::sleep_for(milliseconds(20));
  }
}

Met meet(const Detected& detected, const Surroundings& surroundings, TimePoint deadline) {
  return std::visit(Rendezvous(detected, surroundings, deadline), detected.meeting);
}

// ---- on rank 0's node, on one of a few ports that follow from the job's name

Met Rendezvous::operator()(const PortWindow& point) const {
  // Across nodes, too: the home where the key file lies is commonly shared there. Where it is not, the handshake fails.
  FoundSecret secret = given_or_key_file_secret(around_.environment);
  secret.serves_one_machine = false;
  return is_root() ? serve_in_window(point, secret) : join_in_window(point, secret);
}

Met Rendezvous::serve_in_window(const PortWindow& point, const FoundSecret& secret) const {
  const auto addresses = wire::resolve({.host = point.host, .port = 0}, deadline_);
  const auto mine = std::ranges::find_if(addresses, is_local);
  const wire::Address base = mine != addresses.end() ? *mine : reachable_address();
  std::string why;
  for (int i = 0; i < point.ports; ++i) {
    try {
      const auto port = static_cast<std::uint16_t>(point.first_port + i);
      ServedStore served = serve_store(base.with_port(port), guard_by(secret), deadline_);
      Met met = make_met(secret, std::move(served.store), served.address);
      met.store->set(nonce_key, meeting_name(), deadline_);
      met.host = std::move(served.host);
      met.troubles = std::move(served.troubles);
      return met;
    } catch (const RendezvousError& error) {
      why = error.what();
    }
  }
  throw RendezvousError(fmt::format("no port from {} to {} is free on {}: {}; give init_method \"tcp://host:port\"",
                                    point.first_port, point.first_port + point.ports - 1, point.host, why));
}

// UnauthenticatedConnections on a port of the window fail the handshake, other jobs of ours do not know the job's name.
Met Rendezvous::join_in_window(const PortWindow& point, const FoundSecret& secret) const {
  const auto addresses = wire::resolve({.host = point.host, .port = 0}, deadline_);
  std::string why = "nobody listens";
  for (int attempt = 0; around_.clock.now() < deadline_; ++attempt) {
    const auto port = static_cast<std::uint16_t>(point.first_port + attempt % point.ports);
    for (const wire::Address& address : addresses) {
      try {
        if (!somebody_listens(address.with_port(port), within(seconds(1)))) continue;
        auto store = join_store(address.with_port(port), guard_by(secret), within(seconds(2)));
        if (store->get(nonce_key, within(seconds(2))) == meeting_name()) {
          return make_met(secret, std::move(store), address.with_port(port));
        }
      } catch (const Error& error) {
        why = error.what();
      }
    }
    if (attempt % point.ports == point.ports - 1) std::this_thread::sleep_for(milliseconds(20));
  }
  throw RendezvousError(
      fmt::format("rank 0 was not found on {}, ports {} to {}: {}; if the nodes do not share the home "
                  "folder give all ranks the same TUTTI_SECRET, or use srun --mpi=pmi2",
                  point.host, point.first_port, point.first_port + point.ports - 1, why));
}

// ---- by a record that rank 0 leaves: in a file, or in a place of the launcher's

BoardKey Rendezvous::board_key() const {
  return {
      .rank = detected_.rank, .size = detected_.size, .key = fmt::format("tutti-note-{}", around_.earlier_connects)};
}

Met Rendezvous::operator()(const RecordInFile& point) const {
  const auto given = given_secret(around_.environment);
  // Without a secret the ranks must share this machine, and nobody else needs to reach the store.
  const wire::Address bind_to = given ? reachable_address() : wire::Address::loopback();
  return by_record(make_file_board(point.path), given ? given : given_or_key_file_secret(around_.environment), bind_to);
}

// Beside the key file: a folder that is the user's own, and there on every machine that has a key.
Met Rendezvous::operator()(const RecordInPrivateFile& point) const {
  const FoundSecret secret = given_or_key_file_secret(around_.environment);
  const auto folder = wire::default_key_path(around_.environment).parent_path();
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const auto path = folder / fmt::format("{}-{}-{}.note", point.name, around_.earlier_connects,
                                         read_host_identity(around_.environment).name);
  return by_record(make_file_board(path), secret, wire::Address::loopback());
}

Met Rendezvous::operator()(const RecordInAgentStore& point) const {
  const auto given = given_secret(around_.environment);
  if (!given) throw_no_secret("torchrun started ranks on several nodes and gives them no secret");
  const auto agent = wire::resolve(point.where, deadline_).front();
  BoardKey key = board_key();
  key.key = fmt::format("{}/{}", detected_.job, key.key);
  return by_record(make_agent_board(point.where, std::move(key)), given, reachable_address(agent));
}

Met Rendezvous::operator()(const RecordInPmi& point) const {
  return by_record(make_pmi_board(point.fd, board_key()), given_secret(around_.environment), reachable_address());
}

Met Rendezvous::operator()(const RecordInPmix&) const {
  std::shared_ptr<Board> board;
  try {
    board = make_pmix_board(board_key());
  } catch (const Unsupported& error) {
    if (detected_.on_one_node()) {
      return (*this)(RecordInPrivateFile{fmt::format("pmix-{}", printable(detected_.job))});
    }
    throw RendezvousError(fmt::format("{} speaks PMIx, but {}; give init_method \"tcp://host:port\" and TUTTI_SECRET",
                                      detected_.launcher, error.what()));
  }
  return by_record(std::move(board), given_secret(around_.environment), reachable_address());
}

Met Rendezvous::operator()(const RecordOnBoard& point) const {
  return by_record(point.board, given_secret(around_.environment), reachable_address());
}

Met Rendezvous::by_record(std::shared_ptr<Board> board, std::optional<FoundSecret> secret,
                          const wire::Address& bind_to) const {
  return is_root() ? post_record(std::move(board), std::move(secret), bind_to) : follow_record(*board, secret);
}

Met Rendezvous::post_record(std::shared_ptr<Board> board, std::optional<FoundSecret> secret,
                            const wire::Address& bind_to) const {
  RendezvousRecord record =
      RendezvousRecord::by(fmt::format("pid {} on host {}", getpid(), read_host_identity(around_.environment).name));
  if (!secret) {
    if (!board->keeps_secrets()) throw_no_secret(board->describe() + " is open to others");
    secret = FoundSecret{.secret = wire::make_secret(), .source = "rank 0, through " + board->describe()};
    record.secret = secret->secret;
  }
  ServedStore served = serve_store(bind_to.with_port(0), guard_by(*secret), deadline_);
  record.where = {.host = served.address.host(), .port = served.address.port()};
  Met met = make_met(*secret, std::move(served.store), served.address, board->describe());
  met.store->set(nonce_key, record.nonce, deadline_);
  board->post(record, deadline_);
  met.host = std::move(served.host);
  met.troubles = std::move(served.troubles);
  met.board = std::move(board);
  return met;
}

FoundSecret secret_of(const RendezvousRecord& record, const Board& board, const std::optional<FoundSecret>& given) {
  const bool found = record.secret && board.keeps_secrets();
  if (found && given) {
    throw AuthenticationError(fmt::format(
        "this rank was given a secret ({}), rank 0 was not and made one of its own; give it to all ranks, or to none",
        given->source));
  }
  if (given) return *given;
  if (found) return {.secret = *record.secret, .source = "rank 0, through " + board.describe()};
  throw AuthenticationError(
      "rank 0 was given its secret in TUTTI_SECRET, this rank was not; give it to all ranks, or to none");
}

// A record of an earlier run leads to a port where nothing, another program or another job listens: read it again until
// rank 0 has replaced it.
Met Rendezvous::follow_record(Board& board, const std::optional<FoundSecret>& given) const {
  for (Duration patience = milliseconds(250);; patience = std::min<Duration>(patience * 2, seconds(10))) {
    const RendezvousRecord record = board.fetch(deadline_);
    const FoundSecret secret = secret_of(record, board, given);
    std::string why = "another job answers there";
    try {
      const auto address = wire::resolve(record.where, deadline_).front();
      auto store = join_store(address, guard_by(secret), within(patience));
      if (store->try_get(nonce_key, deadline_) == record.nonce) {
        return make_met(secret, std::move(store), address, board.describe());
      }
    } catch (const Error& error) {
      why = error.what();
    }
    if (around_.clock.now() >= deadline_) {
      const auto address = wire::Address::from_numeric(record.where.host, 1);
      throw RendezvousError(fmt::format(
          "{} (of {}) leads to {}, but: {}; check that rank 0 runs and can be reached there{}", board.describe(),
          record.writer, record.where.text(), why,
          address && address->is_loopback()
              ? ": only processes of its network namespace reach its loopback (`tutti doctor` shows "
                "whether this is one); give all ranks TUTTI_SECRET and TUTTI_INTERFACE to meet at an address instead"
              : ""));
    }
    std::this_thread::sleep_for(milliseconds(10));
  }
}

}  // namespace tutti::rendezvous
