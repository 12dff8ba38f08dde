// shard.cpp: uneven parts, and the samples of one rank.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include <tutti/error.hpp>
#include <tutti/shard.hpp>

#include "base/hash.hpp"
#include "base/random.hpp"

namespace tutti {
namespace {

void require(bool holds, std::string_view what, std::int64_t count, int parts) {
  if (!holds) throw InvalidArgument(fmt::format("cannot {}: {} elements over {} ranks", what, count, parts));
}

}  // namespace

Range shard_of(std::int64_t count, int parts, int index) {
  require(count >= 0 && parts > 0 && index >= 0 && index < parts, fmt::format("give out part {}", index), count, parts);
  const std::int64_t least = count / parts, longer = count % parts;
  return {.begin = index * least + std::min<std::int64_t>(index, longer), .length = least + (index < longer ? 1 : 0)};
}

std::vector<std::int64_t> shard_sizes(std::int64_t count, int parts) {
  require(count >= 0 && parts > 0, "cut into parts", count, parts);
  std::vector<std::int64_t> sizes;
  for (int index = 0; index < parts; ++index) sizes.push_back(shard_of(count, parts, index).length);
  return sizes;
}

std::vector<ShardPiece> pieces_of(std::span<const std::int64_t> sizes, Range range) {
  std::vector<ShardPiece> pieces;
  std::int64_t shard_begin = 0;
  const std::int64_t end = range.begin + range.length;
  for (std::size_t shard = 0; shard < sizes.size(); ++shard) {
    const std::int64_t shard_end = shard_begin + sizes[shard];
    const std::int64_t from = std::max(range.begin, shard_begin), to = std::min(end, shard_end);
    if (from < to) pieces.push_back({static_cast<int>(shard), from - shard_begin, from - range.begin, to - from});
    shard_begin = shard_end;
  }
  if (range.begin < 0 || range.length < 0 || end > shard_begin) {
    throw InvalidArgument(fmt::format("cannot take elements {} to {}: the {} shards hold {} in all", range.begin, end,
                                      sizes.size(), shard_begin));
  }
  return pieces;
}

std::vector<std::int64_t> shuffled_indices(std::int64_t count, std::uint64_t seed, std::uint64_t epoch) {
  require(count >= 0, "shuffle", count, 1);
  std::vector<std::int64_t> indices(static_cast<std::size_t>(count));
  std::iota(indices.begin(), indices.end(), 0);
  Random random(Hash(seed).add(epoch).value());
  // Not std::shuffle: its draws differ between standard libraries.
  for (std::size_t left = indices.size(); left > 1; --left) std::swap(indices[left - 1], indices[random.below(left)]);
  return indices;
}

std::vector<std::int64_t> shard_indices(std::int64_t count, int rank, int size, const SampleOptions& options) {
  require(count >= 0 && size > 0 && rank >= 0 && rank < size, fmt::format("give rank {} its samples", rank), count,
          size);
  std::vector<std::int64_t> all;
  if (options.shuffle) {
    all = shuffled_indices(count, options.seed, options.epoch);
  } else {
    all.resize(static_cast<std::size_t>(count));
    std::iota(all.begin(), all.end(), 0);
  }
  std::int64_t used = count;
  if (options.rest == Rest::drop) used = count / size * size;
  if (options.rest == Rest::pad) used = (count + size - 1) / size * size;
  std::vector<std::int64_t> own;
  for (std::int64_t i = rank; i < used; i += size) own.push_back(all[static_cast<std::size_t>(i % count)]);
  return own;
}

}  // namespace tutti
