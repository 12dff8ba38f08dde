// request.cpp: a signature as text.
// SPDX-License-Identifier: Apache-2.0
#include <tutti/request.hpp>

#include <array>

#include <fmt/format.h>

namespace tutti {

namespace {
std::string kind_name(Op::Kind kind) {
  constexpr std::array kinds = {Op::sum, Op::mean, Op::product, Op::min, Op::max, Op::band, Op::bor, Op::bxor};
  const auto index = static_cast<std::size_t>(kind);
  if (kind == Op::Kind::premul) return "premul";  // its factor is part of `detail` only
  return name_of(index < kinds.size() ? kinds[index] : Op(kind));
}
}  // namespace

std::string describe(const Signature& signature) {
  std::string text = fmt::format("{} #{}", name_of(signature.verb), signature.sequence);
  if (signature.verb == Verb::barrier) return text;
  const bool root_tells = (signature.flags & Signature::sizes_follow) != 0 && root_gives(signature.verb);
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
