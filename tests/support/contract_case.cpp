// contract_case.cpp: cases as text, which of them are valid, and how they are carried out.
// SPDX-License-Identifier: Apache-2.0
#include "contract_case.hpp"

#include <fmt/format.h>

namespace tutti::contract {

std::string_view name_of(Shape shape) {
  constexpr std::string_view names[] = {"line", "rows", "columns", "middle", "stacked"};
  return names[static_cast<int>(shape)];
}

std::string_view name_of(Sizing sizing) {
  constexpr std::string_view names[] = {"even", "given", "exchanged"};
  return names[static_cast<int>(sizing)];
}

std::string describe(const Case& call) {
  std::string text = fmt::format("{} {} × {}", tutti::name_of(call.verb), tutti::name_of(call.dtype), call.length);
  if (reduces(call.verb)) text += fmt::format(" {}", tutti::name_of(call.op));
  text += fmt::format(", {}, {} to {}", name_of(call.shape), name_of(call.input_memory), name_of(call.output_memory));
  if (call.sizing != Sizing::even) text += fmt::format(", sizes {}", name_of(call.sizing));
  if (has_root(call.verb)) text += fmt::format(", root {}", call.root);
  if (call.in_place) text += ", in place";
  if (call.other_axis) text += ", joined along another axis";
  if (call.asynchronous) text += ", asynchronous";
  return text + fmt::format(", seed {}", call.seed);
}

bool makes_sense(const Case& call) {
  const bool exchange = call.verb == Verb::all_to_all;
  const bool prefix = call.verb == Verb::scan || call.verb == Verb::exscan;
  if (reduces(call.verb) && !applies(call.op.kind(), call.dtype)) return false;
  if (prefix && call.op.kind() == Op::Kind::mean) return false;
  if (call.verb == Verb::barrier) return true;
  if (call.shape == Shape::stacked && (!has_blocks(call.verb) || exchange || call.sizing == Sizing::given))
    return false;
  if (call.shape == Shape::stacked && call.sizing == Sizing::exchanged && call.verb != Verb::scatter) return false;
  if (call.sizing == Sizing::given && !has_blocks(call.verb)) return false;
  if (call.sizing == Sizing::exchanged && !has_blocks(call.verb) && call.verb != Verb::broadcast) return false;
  if (call.sizing == Sizing::exchanged && (call.verb == Verb::reduce_scatter || call.in_place)) return false;
  if (call.other_axis && (!exchange || call.shape == Shape::line || call.sizing == Sizing::exchanged || call.in_place))
    return false;
  if (!call.in_place) return true;
  if (!has_blocks(call.verb)) return call.input_memory == call.output_memory;
  // A block is used where it lies only if blocks lie one after the other.
  const bool adjacent = call.shape == Shape::line || call.shape == Shape::rows;
  const bool contiguous = call.input_memory == Memory::contiguous && call.output_memory == Memory::contiguous;
  return adjacent && contiguous && !(exchange && call.sizing != Sizing::even);
}

std::optional<std::string> perform(Group& group, const Case& call) {
  Part part(call, group.rank(), group.size());
  if (call.asynchronous) {
    Work work = group.start(part.request());
    work.wait();
  } else {
    group.run(part.request());
  }
  auto difference = part.difference();
  if (!difference) return std::nullopt;
  return fmt::format("rank {} of {}: {}: {}", group.rank(), group.size(), describe(call), *difference);
}

}  // namespace tutti::contract
