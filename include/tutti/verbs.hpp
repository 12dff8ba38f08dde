// verbs.hpp: the requests of Group::start, and the options of the blocking calls.
// SPDX-License-Identifier: Apache-2.0
//
// Fields that every verb shares: `out` not given means in place where the verb allows it; `timeout` zero means the
// group's.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <tutti/clock.hpp>
#include <tutti/messages.hpp>
#include <tutti/op.hpp>
#include <tutti/view.hpp>

namespace tutti {

using Sizes = std::vector<std::int64_t>;
using Pairs = std::vector<std::pair<int, int>>;

struct AllReduce {
  View data, out{};
  Op op = Op::sum;
  Duration timeout{};
};
/// `out` is used at the root only.
struct Reduce {
  View data, out{};
  int root = 0;
  Op op = Op::sum;
  Duration timeout{};
};
struct Broadcast {
  View data;
  int root = 0;
  Duration timeout{};
};
/// `out` holds every rank's array joined along `axis`. With `uneven`, lengths along the axis differ by rank; `sizes`,
/// one per rank, saves the exchange that would determine them.
struct AllGather {
  View data, out;
  int axis = 0;
  bool uneven = false;
  Sizes sizes{};
  Duration timeout{};
};
struct Gather {
  View data, out{};
  int root = 0;
  int axis = 0;
  bool uneven = false;
  Sizes sizes{};
  Duration timeout{};
};
/// Rank r gets the r-th slice of the reduced array.
struct ReduceScatter {
  View data, out;
  Op op = Op::sum;
  int axis = 0;
  Sizes sizes{};
  Duration timeout{};
};
/// `data` is used at the root only.
struct Scatter {
  View data{}, out{};
  int root = 0;
  int axis = 0;
  Sizes sizes{};
  Duration timeout{};
};
struct AllToAll {
  View data, out;
  int split_axis = 0;
  int concat_axis = 0;
  Sizes split_sizes{}, recv_sizes{};
  Duration timeout{};
};
/// Rank r gets the reduction over ranks 0 … r.
struct Scan {
  View data, out{};
  Op op = Op::sum;
  Duration timeout{};
};
/// Rank r gets the reduction over ranks 0 … r − 1; rank 0 gets the identity.
struct ExclusiveScan {
  View data, out{};
  Op op = Op::sum;
  Duration timeout{};
};
/// Each pair sends from its first rank to its second; zeros where nothing arrives. A rank is in at most one pair on
/// each side.
struct Permute {
  View data, out{};
  Pairs pairs;
  Duration timeout{};
};
struct Barrier {
  Duration timeout{};
};
struct ReduceOptions {
  Op op = Op::sum;
  Duration timeout{};
};
struct RootedReduceOptions {
  int root = 0;
  Op op = Op::sum;
  Duration timeout{};
};
struct RootOptions {
  int root = 0;
  Duration timeout{};
};
struct JoinOptions {
  int root = 0;  // gather only
  int axis = 0;
  bool uneven = false;
  Sizes sizes{};
  Duration timeout{};
};
struct SplitOptions {
  int root = 0;     // scatter only
  Op op = Op::sum;  // reduce_scatter only
  int axis = 0;
  Sizes sizes{};
  Duration timeout{};
};
struct ExchangeOptions {
  int split_axis = 0;
  int concat_axis = 0;
  Sizes split_sizes{}, recv_sizes{};
  Duration timeout{};
};
struct CallOptions {
  Duration timeout{};
};

}  // namespace tutti
