// record_rendezvous.cpp: meeting by a record that rank 0 leaves: in a file, or in a place of the launcher's.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include <tutti/error.hpp>

#include "rendezvous/file_board.hpp"
#include "rendezvous/place.hpp"
#include "rendezvous/rendezvous.hpp"
#include "rendezvous/store_access.hpp"

namespace tutti::rendezvous {

using std::chrono::milliseconds;
using std::chrono::seconds;

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
  ServedStore served = serve_store(bind_to.with_port(0), secret->secret, deadline_);
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

// A record of an earlier run leads to a port where nobody, a stranger or another job listens: look again until rank 0 has
// replaced it.
Met Rendezvous::follow_record(Board& board, const std::optional<FoundSecret>& given) const {
  for (Duration patience = milliseconds(250);; patience = std::min<Duration>(patience * 2, seconds(10))) {
    const RendezvousRecord record = board.fetch(deadline_);
    const FoundSecret secret = secret_of(record, board, given);
    std::string why = "another job answers there";
    try {
      const auto address = wire::resolve(record.where, deadline_).front();
      auto store = join_store(address, secret.secret, within(patience));
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
