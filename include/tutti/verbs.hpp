// verbs.hpp: the requests of Group::start and Group::prepare; the options of messages and of calls that have none but a timeout.
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
#include <tutti/request.hpp>
#include <tutti/view.hpp>

namespace tutti {

using Sizes = std::vector<std::int64_t>;
using Pairs = std::vector<std::pair<int, int>>;

struct AllReduce {
  View data, out{};
  Op op = Op::sum;
  TimeLimit timeout{};
};
/// `out` is used at the root only.
struct Reduce {
  View data, out{};
  int root = 0;
  Op op = Op::sum;
  TimeLimit timeout{};
};
struct Broadcast {
  View data;
  int root = 0;
  TimeLimit timeout{};
};
/// `out` holds every rank's array joined along `axis`. With `uneven`, lengths along the axis differ by rank; `sizes`,
/// one per rank, saves the exchange that would determine them.
struct AllGather {
  View data, out;
  int axis = 0;
  bool uneven = false;
  Sizes sizes{};
  TimeLimit timeout{};
};
struct Gather {
  View data, out{};
  int root = 0;
  int axis = 0;
  bool uneven = false;
  Sizes sizes{};
  TimeLimit timeout{};
};
/// Rank r gets the r-th slice of the reduced array.
struct ReduceScatter {
  View data, out;
  Op op = Op::sum;
  int axis = 0;
  Sizes sizes{};
  TimeLimit timeout{};
};
/// `data` is used at the root only.
struct Scatter {
  View data{}, out{};
  int root = 0;
  int axis = 0;
  Sizes sizes{};
  TimeLimit timeout{};
};
struct AllToAll {
  View data, out;
  int split_axis = 0;
  int concat_axis = 0;
  Sizes split_sizes{}, recv_sizes{};
  TimeLimit timeout{};
};
/// Rank r gets the reduction over ranks 0 … r.
struct Scan {
  View data, out{};
  Op op = Op::sum;
  TimeLimit timeout{};
};
/// Rank r gets the reduction over ranks 0 … r − 1; rank 0 gets the identity.
struct ExclusiveScan {
  View data, out{};
  Op op = Op::sum;
  TimeLimit timeout{};
};
/// Each pair sends from its first rank to its second; zeros where nothing arrives. A rank is in at most one pair on
/// each side.
struct Permute {
  View data, out{};
  Pairs pairs;
  TimeLimit timeout{};
};
struct Barrier {
  TimeLimit timeout{};
};
struct CallOptions {
  TimeLimit timeout{};
};

/// A collective as the group's general form takes it.
Request request_of(const AllReduce& call);
Request request_of(const Reduce& call);
Request request_of(const Broadcast& call);
Request request_of(const AllGather& call);
Request request_of(const Gather& call);
Request request_of(const ReduceScatter& call);
Request request_of(const Scatter& call);
Request request_of(const AllToAll& call);
Request request_of(const Scan& call);
Request request_of(const ExclusiveScan& call);
Request request_of(const Permute& call);
Request request_of(const Barrier& call);
template <class C>
concept Collective = requires(const C& call) {
  request_of(call);
  call.timeout;
};

}  // namespace tutti
