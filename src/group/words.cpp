// words.cpp: a group, its ranks and its calls as people call them.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "group/core.hpp"
#include "group/runtime.hpp"
#include "group/structure_words.hpp"

namespace tutti {

std::string GroupCore::who() const { return fmt::format("rank {} of {}", facts_.rank, facts_.size); }

std::string GroupCore::name_of_rank(int rank) const {
  const int world = facts_.world_of[static_cast<std::size_t>(rank)];
  const std::string host = runtime_->host_of(world);
  return host.empty() ? fmt::format("rank {}", rank) : fmt::format("rank {} (host {})", rank, host);
}

std::string GroupCore::name() const {
  if (facts_.id == runtime_->world_group()) return "the world";
  // Several groups may have the same members; the last digits of the id, which is the same on all of them, tell them apart.
  return fmt::format("group {:04x} of {}", facts_.id & 0xffff, name_ranks(facts_.world_of));
}

// A message's signature is that of the send, on both sides.
std::string GroupCore::call_text(const Operation& operation) const {
  const Signature& signature = operation.request.signature;
  if (!operation.is_message()) return describe(signature);
  const bool is_send = operation.request.verb == Verb::send;
  const std::string peer = operation.from_anyone ? "any rank" : fmt::format("rank {}", operation.peer);
  return fmt::format("{} ({} × {}, tag {}) {} {} in {}", name_of(operation.request.verb), name_of(signature.dtype),
                     signature.count, operation.transfer.envelope.tag, is_send ? "to" : "from", peer, name());
}

std::string details_of(const Request& request) {
  if (const std::string tree = structure_words(request.structure); !tree.empty()) return " of " + tree;
  const View& any = request.input.present() ? request.input : request.output;
  if (!any.present()) return {};
  std::string text = fmt::format(" of shape ({})", fmt::join(any.shape(), ", "));
  if (request.stack) text += ", stacked";
  if (request.axis != 0) text += fmt::format(", axis {}", request.axis);
  if (request.concat_axis != 0) text += fmt::format(", joined along axis {}", request.concat_axis);
  if (!request.sizes.empty()) text += fmt::format(", sizes {}", request.sizes);
  if (reduces(request.verb) && request.op.kind() == Op::Kind::premul)
    text += fmt::format(", factor {}", request.op.factor());
  if (!request.pairs.empty()) text += fmt::format(", pairs {}", request.pairs);
  return text;
}

std::string GroupCore::what_is_awaited(const Operation* except) const {
  const Operation* oldest = nullptr;
  const auto consider = [&](const Operation& operation) {
    if (&operation != except && (oldest == nullptr || operation.started_at < oldest->started_at)) oldest = &operation;
  };
  if (!collectives_.empty()) consider(*collectives_.oldest());
  if (!messages_.empty()) consider(*messages_.all().front());
  if (oldest == nullptr) return {};
  const std::string where = oldest->is_message() ? "" : " in " + name();
  return fmt::format("{}{}{}", call_text(*oldest), where, at_site(oldest->site));
}

}  // namespace tutti
