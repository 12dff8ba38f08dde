// names.cpp: a group, its ranks and its calls as messages to people name them.
// SPDX-License-Identifier: Apache-2.0
#include "group/names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

#include <tutti/error.hpp>

#include "group/operation.hpp"
#include "group/runtime.hpp"
#include "group/stall.hpp"

namespace tutti {

std::string GroupNames::who() const { return fmt::format("rank {} of {}", facts_.rank, facts_.size); }

std::string GroupNames::group() const {
  if (facts_.id == runtime_.directory().world_group()) return "the world";
  // Several groups may have the same members. The last digits of the id, which all members share, distinguish them.
  return fmt::format("group {:04x} of {}", facts_.id & 0xffff, name_ranks(facts_.world_of));
}

// The first group of a rank is the world.
std::string GroupNames::members() const {
  const std::uint64_t world = runtime_.directory().world_group();
  return world == 0 || facts_.id == world ? "world" : name_ranks(facts_.world_of);
}

std::string GroupNames::rank(int rank) const {
  const std::string host = runtime_.host_of(facts_.world_of[static_cast<std::size_t>(rank)]);
  return host.empty() ? fmt::format("rank {}", rank) : fmt::format("rank {} (host {})", rank, host);
}

// A message's signature is that of the send, on both sides.
std::string GroupNames::call(const Operation& operation) const {
  const Signature& signature = operation.request.signature;
  if (!operation.is_message()) return describe(signature);
  const bool is_send = operation.request.verb == Verb::send;
  const std::string peer = operation.from_anyone ? "any rank" : fmt::format("rank {}", operation.peer);
  const std::uint32_t tag = operation.transfer.envelope.tag;
  const std::string array =
      operation.takes_any ? "any array" : fmt::format("{} × {}", name_of(signature.dtype), signature.count);
  return fmt::format("{} ({}, {}) {} {} in {}", operation.transfer.probes ? "probe" : name_of(operation.request.verb),
                     array, tag == any_tag ? "any tag" : fmt::format("tag {}", tag), is_send ? "to" : "from", peer,
                     group());
}

// A tag that nobody asks for is the most frequent reason why a receive waits.
std::string GroupNames::messages_not_taken() const {
  constexpr std::size_t told_max = 4;
  std::vector<std::string> told;
  for (const auto& [world_peer, tag] : runtime_.transport().unreceived(facts_.id, facts_.epoch)) {
    std::string each = fmt::format("tag {} from rank {}", tag, facts_.rank_of(world_peer));
    if (std::ranges::find(told, each) == told.end()) told.push_back(std::move(each));
  }
  if (told.empty()) return {};
  const std::size_t more = told.size() > told_max ? told.size() - told_max : 0;
  told.resize(told.size() - more);
  return fmt::format("; messages that it does not take have come: {}{}", fmt::join(told, ", "),
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

std::exception_ptr GroupNames::left_without(const Operation& message, int world_peer) const {
  const bool receives = message.request.verb == Verb::recv;
  const std::string why =
      receives && runtime_.directory().has_lost_link(world_peer)
          ? fmt::format("{} has left the job, and the link to it broke before all that it sent had arrived",
                        rank(facts_.rank_of(world_peer)))
          : fmt::format("{} left the job without {} it", rank(facts_.rank_of(world_peer)),
                        receives ? "sending" : "receiving");
  const std::string text = fmt::format("{}: {}: {}", who(), call(message), why);
  return std::make_exception_ptr(PeerLost(text, world_peer, runtime_.host_of(world_peer), why));
}

}  // namespace tutti
