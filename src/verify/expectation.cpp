// expectation.cpp: what the verbs mean, element by element.
// SPDX-License-Identifier: Apache-2.0
#include "verify/expectation.hpp"

#include "plan/layout.hpp"

namespace tutti {

// The reduction of element `offset` of ranks 0 … ranks−1.
Expected Expectation::sum(int ranks, std::int64_t offset, Symbol::State state) {
  if (prefix_.size() <= static_cast<std::size_t>(offset)) prefix_.resize(static_cast<std::size_t>(offset) + 1);
  std::vector<std::uint64_t>& sums = prefix_[static_cast<std::size_t>(offset)];
  if (sums.empty()) sums.push_back(0);
  while (sums.size() <= static_cast<std::size_t>(ranks)) {
    sums.push_back(sums.back() + input_symbol(static_cast<int>(sums.size()) - 1, offset).contributions);
  }
  return {.kind = Expected::Kind::reduction,
          .symbol = {.contributions = sums[static_cast<std::size_t>(ranks)], .state = state}};
}

void Expectation::of(std::span<const Plan> plans, int rank, std::vector<Expected>& elements) {
  const Spec& spec = plans[static_cast<std::size_t>(rank)].spec;
  const auto state = spec.finish ? Symbol::State::finished : Symbol::State::value;
  const auto exactly = [](const Symbol& symbol) { return Expected{.kind = Expected::Kind::exactly, .symbol = symbol}; };
  elements.assign(static_cast<std::size_t>(output_count(spec)), Expected{});
  const std::int64_t count = static_cast<std::int64_t>(elements.size());
  const auto fill = [&](auto&& expected_at) {
    for (std::int64_t i = 0; i < count; ++i) elements[static_cast<std::size_t>(i)] = expected_at(i);
  };
  switch (spec.verb) {
    case Verb::all_reduce:
    case Verb::reduce: fill([&](std::int64_t i) { return sum(spec.size, i, state); }); break;
    case Verb::scan: fill([&](std::int64_t i) { return sum(rank + 1, i, state); }); break;
    case Verb::exscan:
      fill([&](std::int64_t i) { return rank == 0 ? exactly(identity_symbol()) : sum(rank, i, state); });
      break;
    case Verb::reduce_scatter: {
      const std::int64_t begin = blocks_of(spec).offset(rank);
      fill([&](std::int64_t i) { return sum(spec.size, begin + i, state); });
      break;
    }
    case Verb::broadcast: fill([&](std::int64_t i) { return exactly(input_symbol(spec.root, i)); }); break;
    case Verb::scatter: {
      const std::int64_t begin = blocks_of(spec).offset(rank);
      fill([&](std::int64_t i) { return exactly(input_symbol(spec.root, begin + i)); });
      break;
    }
    case Verb::permute: {
      int source = -1;
      for (const auto& [from, to] : spec.pairs) source = to == rank ? from : source;
      fill([&](std::int64_t i) { return exactly(source < 0 ? zero_symbol() : input_symbol(source, i)); });
      break;
    }
    case Verb::all_gather:
    case Verb::gather:
    case Verb::all_to_all: {
      std::int64_t at = 0;
      for (int peer = 0; count > 0 && peer < spec.size; ++peer) {
        const Spec& theirs = plans[static_cast<std::size_t>(peer)].spec;
        const Blocks blocks = blocks_of(theirs);
        const bool personal = spec.verb == Verb::all_to_all;
        const std::int64_t begin = personal ? blocks.offset(rank) : 0;
        const std::int64_t length = blocks.count(personal ? rank : peer);
        for (std::int64_t i = 0; i < length; ++i) {
          elements[static_cast<std::size_t>(at++)] = exactly(input_symbol(peer, begin + i));
        }
      }
      break;
    }
    default: break;
  }
}

}  // namespace tutti
