// world_param.hpp: tests that run in worlds of several kinds and sizes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "case_grid.hpp"
#include "world.hpp"

namespace tutti::contract {

struct WorldParam {
  WorldKind kind = WorldKind::tcp;
  int size = 2;
  friend std::ostream& operator<<(std::ostream& out, const WorldParam& param) {
    return out << param.size << " ranks, " << name_of(param.kind);
  }
};

inline std::string world_name(const testing::TestParamInfo<WorldParam>& info) {
  return std::string(name_of(info.param.kind)) + "_" + std::to_string(info.param.size) + "_ranks";
}

/// Every kind of world, in each of these sizes.
inline std::vector<WorldParam> worlds(const std::vector<int>& sizes) {
  std::vector<WorldParam> params;
  for (const WorldKind kind : {WorldKind::tcp, WorldKind::shm, WorldKind::simulated}) {
    for (const int size : sizes) params.push_back({kind, size});
  }
  return params;
}

/// Without the simulated cluster: for tests of what happens while a rank sleeps, or by the deadline of the real clock.
inline std::vector<WorldParam> thread_worlds(const std::vector<int>& sizes) {
  std::vector<WorldParam> params = worlds(sizes);
  std::erase_if(params, [](const WorldParam& param) { return param.kind == WorldKind::simulated; });
  return params;
}

/// With a backend of the tests' own in front of the built-in ones.
inline std::vector<WorldParam> extended_worlds(const std::vector<int>& sizes) {
  std::vector<WorldParam> params;
  for (const int size : sizes) params.push_back({WorldKind::board, size});
  return params;
}

class InWorld : public testing::TestWithParam<WorldParam> {
 protected:
  void SetUp() override { world_ = make_world(GetParam().kind, {.size = GetParam().size, .seed = seed_of_run()}); }
  void TearDown() override { world_.reset(); }

  /// Runs the body on every rank.
  void on_every_rank(const std::function<void(Group& world)>& body) { world_->run(body); }
  [[nodiscard]] int size() const { return GetParam().size; }

 private:
  std::unique_ptr<World> world_;
};

}  // namespace tutti::contract
