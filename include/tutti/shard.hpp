// shard.hpp: which rank holds which part of an array or a data set. Pure arithmetic: nothing here communicates.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tutti {

struct Range {
  std::int64_t begin = 0;
  std::int64_t length = 0;
  friend bool operator==(const Range&, const Range&) = default;
};

/// Splits `count` elements over `parts` as evenly as possible: the first (count mod parts) parts get one more.
std::vector<std::int64_t> shard_sizes(std::int64_t count, int parts);
/// One part by its index, without computing all of them.
Range shard_of(std::int64_t count, int parts, int index);

/// Elements that are contiguous in one shard.
struct ShardPiece {
  int shard = 0;
  std::int64_t offset = 0;  // in the shard
  std::int64_t begin = 0;   // in the requested range
  std::int64_t length = 0;
  friend bool operator==(const ShardPiece&, const ShardPiece&) = default;
};

/// Where a range of the whole lies if the whole is cut into shards of these sizes: m ranks read what n ranks wrote.
/// InvalidArgument if the range reaches beyond the shards.
std::vector<ShardPiece> pieces_of(std::span<const std::int64_t> sizes, Range range);

/// 0 … count − 1 in an order that depends on the arguments only: the same on every machine and in every version.
std::vector<std::int64_t> shuffled_indices(std::int64_t count, std::uint64_t seed, std::uint64_t epoch);

/// How to split a data set whose size the number of ranks does not divide.
enum class Rest : std::uint8_t {
  pad,   // the first samples are used again: every rank gets the same number
  drop,  // the last samples are dropped, different ones in every epoch: every rank gets the same number
  keep,  // each sample once: some ranks get one more
};

struct SampleOptions {
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  bool shuffle = true;
  Rest rest = Rest::pad;
};

/// The samples of one rank in one epoch. Rank r of n takes every n-th sample from the r-th on, so that after each step
/// all ranks together have seen the same samples, for any number of ranks.
std::vector<std::int64_t> shard_indices(std::int64_t count, int rank, int size, const SampleOptions& options = {});

}  // namespace tutti
