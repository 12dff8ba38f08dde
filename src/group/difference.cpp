// difference.cpp: what ranks say when they find that they did not make the same calls.
// SPDX-License-Identifier: Apache-2.0
#include "group/difference.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "group/signature.hpp"
#include "group/structure_words.hpp"

namespace tutti {
namespace {

using namespace std::chrono_literals;

constexpr Duration ask_again = 100ms;  // a question may be lost with a rank on its way

constexpr std::string_view tree_word = " of ", shape_word = " of shape ";  // what details begin with

std::string described(const CallOf& call) { return describe(call.signature) + call.details + at_site(call.site); }

// Of a long text the part around the place where the two begin to differ.
std::string from_difference(std::string_view text, std::size_t differs_at) {
  constexpr std::size_t whole = 240, before = 60;
  if (text.size() <= whole) return std::string(text);
  const std::size_t begin = std::min(differs_at > before ? differs_at - before : 0, text.size());
  return fmt::format("{}{}{}", begin > 0 ? " …" : "", text.substr(begin, whole),
                     begin + whole < text.size() ? "…" : "");
}

void shorten(std::string& one, std::string& other) {
  const auto at = static_cast<std::size_t>(std::ranges::mismatch(one, other).in1 - one.begin());
  one = from_difference(one, at);
  other = from_difference(other, at);
}

}  // namespace

CallDigest digest_of(const control::Position& position) {
  return {.calls = position.calls, .sum = position.history, .refused = position.refused, .is_known = position.is_known};
}

control::Position position_in(const GroupFacts& facts, const CallDigest& digest) {
  return {.group = facts.id,
          .epoch = facts.epoch,
          .calls = digest.calls,
          .history = digest.sum,
          .refused = digest.refused,
          .is_known = digest.is_known};
}

std::string details_of(const Request& request) {
  if (const std::string tree = structure_words(request.structure); !tree.empty()) return std::string(tree_word) + tree;
  const View& any = request.input.present() ? request.input : request.output;
  if (!any.present()) return {};
  std::string text = fmt::format("{}({})", shape_word, fmt::join(any.shape(), ", "));
  if (request.stack) text += ", stacked";
  if (request.axis != 0) text += fmt::format(", axis {}", request.axis);
  if (request.concat_axis != 0) text += fmt::format(", joined along axis {}", request.concat_axis);
  if (!request.sizes.empty()) text += fmt::format(", sizes {}", request.sizes);
  if (reduces(request.verb) && request.op.kind() == Op::Kind::premul)
    text += fmt::format(", factor {}", request.op.factor());
  if (!request.pairs.empty()) text += fmt::format(", pairs {}", request.pairs);
  return text;
}

bool OpenDifference::pursue(control::Control& control, TimePoint now) {
  if (world_peer < 0 || !control.may_answer(world_peer)) return false;
  if (now - asked_at >= ask_again) {
    asked_at = now;
    control.probe(world_peer, encode(question));
  }
  return true;
}

control::Cause difference_between(CallOf own, CallOf theirs) {
  const Signature &a = own.signature, &b = theirs.signature;
  const std::uint64_t sequence = a.sequence;
  shorten(own.details, theirs.details);
  const bool look_alike =
      describe(a) + own.details == describe(b) + theirs.details || own.details.empty() != theirs.details.empty();
  const std::string_view hint = look_alike && describe(a) == describe(b)
                                    ? " with another shape, axis, factor, sizes, pairs or tree of arrays"
                                    : "";
  // What a rank without an array asked for has no words.
  const bool is_told = root_gives(a.verb) && a.verb == b.verb && own.details.empty() != theirs.details.empty();
  const std::string words = own.details + theirs.details;
  const bool is_tree = is_told && words.starts_with(tree_word) && !words.starts_with(shape_word);
  const std::string_view nothing =
      is_tree ? "; None stands for one array: for a tree of arrays, pass one like the root's on every rank, or send it "
                "as an object"
              : "";
  const std::string_view differentiation = ((a.flags ^ b.flags) & Signature::differentiated) != 0
                                               ? " (one takes part in differentiation, the other does not)"
                                               : "";
  const std::string devices =
      ((a.flags ^ b.flags) & on_gpu_flag) != 0
          ? fmt::format(
                " (the array of rank {} is on a GPU, that of rank {} in the CPU's memory; give all ranks the same "
                "kind of array)",
                (a.flags & on_gpu_flag) != 0 ? own.rank : theirs.rank,
                (a.flags & on_gpu_flag) != 0 ? theirs.rank : own.rank)
          : "";
  if (own.rank > theirs.rank) std::swap(own, theirs);
  return {.kind = control::Cause::Kind::mismatch,
          .culprits = {},
          .sequence = sequence,
          .text = fmt::format("rank {} called {}, but rank {} called {}{}{}{}{}; every rank of a group must make the "
                              "same calls in the same order",
                              own.rank, described(own), theirs.rank, described(theirs), hint, differentiation, devices,
                              nothing)};
}

control::Cause numbers_differ(CallCount left, CallCount ends) {
  return {.kind = control::Cause::Kind::mismatch,
          .culprits = {},
          .sequence = std::min(left.calls, ends.calls),
          .text = fmt::format("rank {} left after {} calls of the group, rank {} ends it after {}; every rank of a "
                              "group must make the same calls in the same order",
                              left.rank, left.calls, ends.rank, ends.calls)};
}

control::Cause difference_before(int rank, int other, std::uint64_t calls) {
  return {
      .kind = control::Cause::Kind::mismatch,
      .culprits = {},
      .sequence = calls,
      .text = fmt::format("ranks {} and {} did not make the same calls: one of those before #{} differed in its "
                          "verb, root, dtype, count or reduction, and cannot be named any more; every rank of a group "
                          "must make the same calls in the same order",
                          std::min(rank, other), std::max(rank, other), calls)};
}

std::optional<Difference> first_difference(const CallHistory& own, std::span<const Signature> theirs) {
  for (const Signature& call : theirs) {
    const Signature* const mine = own.find(call.sequence);
    if (mine != nullptr && !mine->is_same_call(call)) return Difference{*mine, call};
  }
  return std::nullopt;
}

}  // namespace tutti
