// names.cpp: a group, its ranks and its calls as messages to people name them.
// SPDX-License-Identifier: Apache-2.0
#include "group/names.hpp"

#include <fmt/format.h>

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

}  // namespace tutti
