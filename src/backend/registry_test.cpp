// registry_test.cpp: the first backend of the table that serves a request gets it.
// SPDX-License-Identifier: Apache-2.0
#include "backend/registry.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include <tutti/error.hpp>

#include "cuda/driver.hpp"
#include "link/alone_link.hpp"
#include "messages/messages.hpp"

namespace tutti {
namespace {

class Never final : public PreparedCall {
 public:
  bool start(const Buffers&, const Signature&) override { return false; }
  bool poll() override { return false; }
  void cancel() override {}
  [[nodiscard]] Progress progress() const override { return {}; }
};

/// Serves barriers.
class Barriers final : public Backend {
 public:
  [[nodiscard]] std::string_view name() const override { return "barriers"; }
  [[nodiscard]] std::optional<std::string> refuses(const Request& request) const override {
    return request.verb == Verb::barrier ? std::nullopt : std::optional<std::string>("barriers only");
  }
  std::unique_ptr<PreparedCall> prepare(const Request&) override { return std::make_unique<Never>(); }
};

class Registry : public testing::Test {
 protected:
  GroupFacts facts{.rank = 0, .size = 1, .id = 1, .world_of = {0}};
  Table table;
  messages::Messages transport{
      messages::MessagesSetup{.clock = steady_clock(), .network = std::make_unique<link::AloneLink>(steady_clock())}};
  std::array<float, 2> data{1.0f, 2.0f};
};

TEST_F(Registry, HasItsRowsInTheOrderInWhichTheyAreAsked) {
  std::vector<std::string_view> names;
  for (const BackendRow& row : backend_table()) names.push_back(row.name);
  EXPECT_THAT(names, testing::ElementsAre("alone", "mpi", "shm", "native", "nccl", "cuda"));
}

TEST_F(Registry, AGroupOfOneIsServedWithoutPlansAndOthersAreNot) {
  EXPECT_EQ(Backends({.facts = &facts, .table = &table, .transport = &transport}).name(), "alone");
  facts.size = 2;
  facts.world_of = {0, 1};
  EXPECT_EQ(Backends({.facts = &facts, .table = &table, .transport = &transport}).name(), "native");
}

TEST_F(Registry, WhatOneBackendRefusesGoesToTheNext) {
  const BackendFactory make = [](const GroupFacts&, Transport&) { return std::make_unique<Barriers>(); };
  const BackendFactory make_nothing = [](const GroupFacts&, Transport&) { return nullptr; };
  const std::vector<BackendFactory> extensions{make_nothing, make};
  const Backends backends({.facts = &facts, .table = &table, .transport = &transport, .extensions = extensions});
  EXPECT_EQ(backends.name(), "barriers");
  EXPECT_EQ(backends.choose({.verb = Verb::barrier}).name(), "barriers");
  EXPECT_EQ(backends.choose({.verb = Verb::all_reduce, .input = data, .output = data}).name(), "alone");
}

TEST_F(Registry, AGroupThatAsksForABackendForGpusHasTheOthersForMemoryOfTheCpu) {
  facts.size = 2;
  facts.world_of = {0, 1};
  for (const std::string_view asked : {"nccl", "cuda"}) {
    const Backends backends({.facts = &facts, .table = &table, .transport = &transport, .asked = asked});
    EXPECT_EQ(backends.name(), asked);
    std::string refusals;
    EXPECT_EQ(backends.choose({.verb = Verb::all_reduce, .input = data, .output = data}, &refusals).name(), "native");
    EXPECT_THAT(refusals, testing::HasSubstr("it works on memory of GPUs"));
  }
}

TEST_F(Registry, AGroupOfOneUsesNcclOnlyWhereItAsksForIt) {
  const auto has_nccl = [&](std::string_view asked) {
    std::string refusals;
    const Backends backends({.facts = &facts, .table = &table, .transport = &transport, .asked = asked});
    static_cast<void>(backends.choose({.verb = Verb::barrier}, &refusals));
    return backends.name() == "nccl";
  };
  EXPECT_TRUE(has_nccl("nccl"));
  EXPECT_FALSE(has_nccl(""));
}

TEST_F(Registry, MemoryThatNoBackendReachesIsRefusedWithTheReason) {
  const Backends backends({.facts = &facts, .table = &table, .transport = &transport});
  const std::int64_t shape[] = {2};
  const View on_device(data.data(), DType::float32, shape, Device{.kind = Device::Kind::cuda});
  if (cuda::find_driver().driver != nullptr) GTEST_SKIP() << "this machine has a GPU, which reaches its memory";
  try {
    static_cast<void>(backends.choose({.verb = Verb::all_reduce, .input = on_device, .output = on_device}));
    FAIL() << "it was not refused";
  } catch (const Unsupported& error) {
    EXPECT_THAT(error.what(),
                testing::AllOf(testing::HasSubstr("on a GPU"), testing::HasSubstr("copy it to the CPU's memory")));
  }
}

}  // namespace
}  // namespace tutti
