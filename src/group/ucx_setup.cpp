// ucx_setup.cpp: agreeing on UCX.
// SPDX-License-Identifier: Apache-2.0
//
// A record is one letter for what was asked for (a: nothing, t: tcp, u: ucx), one for what follows (=: an address, !: a problem, -: nothing),
// and that.
#include "group/ucx_setup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include <tutti/error.hpp>

#include "wire/handshake.hpp"

namespace tutti {
namespace {

constexpr char asked_nothing = 'a', asked_tcp = 't', asked_ucx = 'u';
constexpr char has_address = '=', has_problem = '!', has_nothing = '-';

char asked_for(const std::string& backend, const Environment& environment) {
  if (backend == "ucx") return asked_ucx;
  const std::string link = environment.get("TUTTI_LINK").value_or("auto");
  if (link.empty() || link == "auto") return asked_nothing;
  if (link == "tcp") return asked_tcp;
  if (link == "ucx") return asked_ucx;
  throw InvalidArgument(fmt::format("TUTTI_LINK={}: the known links are auto, tcp, ucx", link));
}

std::string_view name_of_asked(char asked) { return asked == asked_ucx ? "ucx" : asked == asked_tcp ? "tcp" : "auto"; }

void check(const std::vector<std::string>& records) {
  for (std::size_t rank = 0; rank < records.size(); ++rank) {
    if (records[rank].size() < 2) throw RendezvousError("a rank told its link in another version's words");
    if (records[rank][0] == records[0][0]) continue;
    throw Mismatch(fmt::format("rank 0 asks for the link {}, rank {} for {}; set TUTTI_LINK alike on all ranks",
                               name_of_asked(records[0][0]), rank, name_of_asked(records[rank][0])));
  }
  if (records[0][0] != asked_ucx) return;
  const auto failing = std::ranges::find(records, has_problem, [](const std::string& text) { return text[1]; });
  if (failing != records.end())
    throw Unsupported(fmt::format("link ucx: rank {}: {}", failing - records.begin(), failing->substr(2)));
}

/// Why a rank did not open UCX.
std::string why_not(const UcxJoining::Peers& peers, std::size_t rank, bool encrypts) {
  if (peers.records[0][0] == asked_tcp) return "TUTTI_LINK=tcp asks for that";
  if (encrypts) return "TUTTI_TLS=1 asks for encryption, which UCX does not have";
  if (std::ranges::count(peers.nodes, peers.nodes[0]) == std::ssize(peers.nodes)) return "there is one host only";
  return fmt::format("rank {} has no fabric that UCX knows (tutti doctor)", rank);
}

}  // namespace

UcxJoining::UcxJoining(const std::string& backend, const Place& place, const Environment& environment)
    : rank_(place.rank), encrypts_(wire::encryption_from(environment) == wire::Encryption::tls) {
  const char asked = asked_for(backend, environment);
  record_ = {asked, has_nothing};
  if (encrypts_) {
    if (asked == asked_ucx)
      record_ = std::string{asked, has_problem} + "TUTTI_TLS=1 asks for encryption, which UCX does not have; use tcp";
    return;
  }
  const bool may_use =
      asked == asked_ucx || (asked == asked_nothing && place.node_count > 1 && !link::find_ucx().fabrics.empty());
  if (!may_use) return;
  try {
    worker_ = link::open_ucx({});
    record_ = std::string{asked, has_address} + worker_->address();
  } catch (const Error& error) {
    record_ = std::string{asked, has_problem} + error.what();
  }
}

std::unique_ptr<Link> UcxJoining::make_link(const Peers& peers, const Log& log) {
  check(peers.records);
  link::UcxSetup setup{.rank = rank_, .secret = peers.secret, .world = peers.world};
  const int own_node = peers.nodes[static_cast<std::size_t>(rank_)];
  for (std::size_t rank = 0; rank < peers.records.size(); ++rank) {
    if (peers.records[rank][1] != has_address) {
      log.info("messages do not go over ucx, because {}", why_not(peers, rank, encrypts_));
      return nullptr;
    }
    setup.addresses.push_back(peers.records[rank].substr(2));
    setup.on_this_host.push_back(peers.nodes[rank] == own_node);
  }
  setup.worker = std::move(worker_);
  log.info("messages go over ucx, because {}",
           peers.records[0][0] == asked_ucx ? "it is asked for" : "every rank has a fabric that UCX knows");
  return link::make_ucx_link(std::move(setup));
}

}  // namespace tutti
