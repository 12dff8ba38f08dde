// request.cpp: the names of the verbs, and a signature in words.
// SPDX-License-Identifier: Apache-2.0
#include <tutti/request.hpp>

#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tutti/error.hpp>

namespace tutti {

namespace {
constexpr std::array<std::string_view, verb_count> verb_names = {
    "all_reduce", "reduce", "broadcast", "all_gather", "gather",  "reduce_scatter", "scatter",
    "all_to_all", "scan",   "exscan",    "permute",    "barrier", "send",           "recv"};

std::string kind_name(Op::Kind kind) {
  constexpr std::array kinds = {Op::sum, Op::mean, Op::product, Op::min, Op::max, Op::band, Op::bor, Op::bxor};
  const auto index = static_cast<std::size_t>(kind);
  return index < kinds.size() ? name_of(kinds[index]) : "premul";  // its factor is part of `detail` only
}
}  // namespace

std::string_view name_of(Verb verb) {
  const auto index = static_cast<std::size_t>(verb);
  return index < verb_names.size() ? verb_names[index] : "unknown verb";
}

Verb verb_from_name(std::string_view name) {
  for (std::size_t i = 0; i < verb_names.size(); ++i) {
    if (verb_names[i] == name) return static_cast<Verb>(i);
  }
  throw InvalidArgument(fmt::format("\"{}\" is not a verb; the verbs are {}", name, fmt::join(verb_names, ", ")));
}

std::string describe(const Signature& signature) {
  std::string text = fmt::format("{} #{}", name_of(signature.verb), signature.sequence);
  if (signature.verb == Verb::barrier) return text;
  const bool root_tells = (signature.flags & Signature::sizes_follow) != 0 &&
                          (signature.verb == Verb::broadcast || signature.verb == Verb::scatter);
  if (root_tells) {
    text += " (of what its root has";
  } else {
    text += fmt::format(" ({}", name_of(signature.dtype));
    text += (signature.flags & Signature::uneven) != 0 ? ", uneven" : fmt::format(" × {}", signature.count);
  }
  if (reduces(signature.verb)) {
    text += ", " + kind_name(signature.op);
  }
  if (has_root(signature.verb)) text += fmt::format(", root {}", signature.root);
  if ((signature.flags & Signature::differentiated) != 0) text += ", differentiated";
  return text + ")";
}

}  // namespace tutti
