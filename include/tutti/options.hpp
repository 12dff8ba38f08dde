// options.hpp: the options of the blocking collectives: each verb has those that it uses, and no others.
// SPDX-License-Identifier: Apache-2.0
//
// They are given by name: `world.reduce(x, {.root = 1, .op = tutti::Op::max, .timeout = 30s})`. A `timeout` of zero means the group's.
#pragma once

#include <string>

#include <tutti/clock.hpp>
#include <tutti/op.hpp>
#include <tutti/verbs.hpp>

namespace tutti {

struct ReduceOptions {
  Op op = Op::sum;
  TimeLimit timeout{};
};
struct RootedReduceOptions {
  int root = 0;
  Op op = Op::sum;
  TimeLimit timeout{};
};
struct RootOptions {
  int root = 0;
  TimeLimit timeout{};
};
struct AllGatherOptions {
  int axis = 0;
  bool uneven = false;
  Sizes sizes{};
  TimeLimit timeout{};
};
struct GatherOptions {
  int root = 0;
  int axis = 0;
  bool uneven = false;
  Sizes sizes{};
  TimeLimit timeout{};
};
struct ReduceScatterOptions {
  Op op = Op::sum;
  int axis = 0;
  Sizes sizes{};
  TimeLimit timeout{};
};
struct ScatterOptions {
  int root = 0;
  int axis = 0;
  Sizes sizes{};
  TimeLimit timeout{};
};
struct ExchangeOptions {
  int split_axis = 0;
  int concat_axis = 0;
  Sizes split_sizes{}, recv_sizes{};
  TimeLimit timeout{};
};

// Where the result comes by value it has one axis, so there is none to choose.
struct AllGatherValueOptions {
  bool uneven = false;
  Sizes sizes{};
  TimeLimit timeout{};
};
struct GatherValueOptions {
  int root = 0;
  bool uneven = false;
  Sizes sizes{};
  TimeLimit timeout{};
};
struct ReduceScatterValueOptions {
  Op op = Op::sum;
  Sizes sizes{};
  TimeLimit timeout{};
};
struct ScatterValueOptions {
  int root = 0;
  Sizes sizes{};
  TimeLimit timeout{};
};
struct AllToAllValueOptions {
  Sizes split_sizes{}, recv_sizes{};
  TimeLimit timeout{};
};

/// How a group is made of another one.
struct GroupOptions {
  /// auto, native, shm, ucx, mpi, or one of the program's own; the same on all members. Empty: as the group that it is made of.
  std::string backend{};
  TimeLimit timeout{};
};

// Structs are reduced by a function of the program's own, which has no default.
template <class T>
struct OwnReduceOptions {
  OpOn<T> op;
  TimeLimit timeout{};
};
template <class T>
struct OwnRootedReduceOptions {
  int root = 0;
  OpOn<T> op;
  TimeLimit timeout{};
};

}  // namespace tutti
