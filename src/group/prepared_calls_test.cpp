// prepared_calls_test.cpp: calls of one shape are prepared once; what differs in more than addresses is another shape.
// SPDX-License-Identifier: Apache-2.0
#include "group/prepared_calls.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <utility>
#include <vector>

namespace tutti {
namespace {

class NothingToDo final : public PreparedCall {
 public:
  bool start(const Buffers&, const Signature&) override { return true; }
  bool poll() override { return true; }
  void cancel() override {}
  [[nodiscard]] Progress progress() const override { return {}; }
};

class CountingBackend final : public Backend {
 public:
  [[nodiscard]] std::string_view name() const override { return "counting"; }
  [[nodiscard]] std::optional<std::string> refuses(const Request&) const override { return std::nullopt; }
  std::unique_ptr<PreparedCall> prepare(const Request&) override {
    ++prepared;
    return std::make_unique<NothingToDo>();
  }
  int prepared = 0;
};

class PreparedCallsTest : public testing::Test {
 protected:
  CachedCall& add(const CallTerms& terms) {
    return calls.add(std::make_shared<CachedCall>(terms, request_in_full(terms), backend), terms);
  }
  CountingBackend backend;  // outlives the calls
  PreparedCalls calls;
  std::array<float, 8> memory{};
  View first{std::span(memory).first(2)}, second{std::span(memory).subspan(4, 2)}, longer{std::span(memory).first(3)};
};

TEST_F(PreparedCallsTest, FindsTheShapeOfACallOnArraysElsewhere) {
  CachedCall& added = add({.verb = Verb::all_reduce, .input = first, .output = first});
  EXPECT_EQ(calls.find({.verb = Verb::all_reduce, .input = second, .output = second}), &added);
}

TEST_F(PreparedCallsTest, TellsCallsApartThatDifferInMoreThanAddresses) {
  add({.verb = Verb::all_reduce, .input = first, .output = first});
  const Request other_axis{.verb = Verb::all_reduce, .input = first, .output = first, .structure = 7};
  EXPECT_EQ(calls.find({.verb = Verb::reduce, .input = first, .output = first}), nullptr);
  EXPECT_EQ(calls.find({.verb = Verb::all_reduce, .input = first, .output = first, .op = Op::max}), nullptr);
  EXPECT_EQ(calls.find({.verb = Verb::all_reduce, .input = first, .output = first, .root = 1}), nullptr);
  EXPECT_EQ(calls.find({.verb = Verb::all_reduce, .input = first, .output = first, .differentiated = true}), nullptr);
  EXPECT_EQ(calls.find({.verb = Verb::all_reduce, .input = longer, .output = longer}), nullptr);
  EXPECT_EQ(calls.find(terms_of(other_axis)), nullptr);
}

TEST_F(PreparedCallsTest, ACallInPlaceIsAnotherThanOneBetweenTwoArrays) {
  CachedCall& in_place = add({.verb = Verb::all_reduce, .input = first, .output = first});
  EXPECT_EQ(calls.find({.verb = Verb::all_reduce, .input = first, .output = second}), nullptr);
  CachedCall& apart = add({.verb = Verb::all_reduce, .input = first, .output = second});
  EXPECT_EQ(calls.find({.verb = Verb::all_reduce, .input = second, .output = first}), &apart);
  EXPECT_EQ(calls.find({.verb = Verb::all_reduce, .input = second, .output = second}), &in_place);
}

TEST_F(PreparedCallsTest, WhatIsNotSimpleIsComparedInFull) {
  Request asked{.verb = Verb::permute, .input = first, .output = second, .pairs = {{0, 1}}};
  CachedCall& added = add(terms_of(asked));
  EXPECT_EQ(calls.find(terms_of(asked)), &added);
  asked.pairs = {{1, 0}};
  EXPECT_EQ(calls.find(terms_of(asked)), nullptr);
}

TEST_F(PreparedCallsTest, FollowsCallsThatTakeTurnsAndThoseThatComeInAnotherOrder) {
  std::vector<CachedCall*> added;
  for (int root = 0; root < 4; ++root)
    added.push_back(&add({.verb = Verb::broadcast, .input = first, .output = first, .root = root}));
  for (const int root : {0, 1, 2, 3, 0, 1, 2, 3, 3, 1, 0, 2}) {
    EXPECT_EQ(calls.find({.verb = Verb::broadcast, .input = second, .output = second, .root = root}),
              added[static_cast<std::size_t>(root)]);
  }
}

TEST_F(PreparedCallsTest, KeepsNoMoreThanItsCapacityAndNeverDropsOneThatIsInUse) {
  const auto held = add({.verb = Verb::barrier, .input = View(), .output = View()}).shared_from_this();
  for (int root = 0; root < 3 * static_cast<int>(PreparedCalls::capacity); ++root)
    add({.verb = Verb::broadcast, .input = first, .output = first, .root = root});
  EXPECT_EQ(calls.size(), PreparedCalls::capacity);
  EXPECT_EQ(calls.find({.verb = Verb::barrier, .input = View(), .output = View()}), held.get());
}

TEST_F(PreparedCallsTest, PreparesAsManyAsAreUnderWayAtTheSameTime) {
  CachedCall& shape = add({.verb = Verb::all_reduce, .input = first, .output = first});
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(shape.idle().start({}, {}));
  EXPECT_EQ(backend.prepared, 1);
  auto one = (static_cast<void>(shape.idle()), shape.take());
  auto two = (static_cast<void>(shape.idle()), shape.take());
  EXPECT_EQ(backend.prepared, 2);
  shape.give_back(std::move(one));
  shape.give_back(std::move(two));
  static_cast<void>(shape.idle());
  EXPECT_EQ(backend.prepared, 2);
}

TEST_F(PreparedCallsTest, ARequestGetsTheArraysOfItsOwnCall) {
  CachedCall& shape = add({.verb = Verb::all_reduce, .input = first, .output = first});
  const Request request = shape.request_of({.verb = Verb::all_reduce, .input = second, .output = second});
  EXPECT_EQ(request.input.data(), second.data());
  EXPECT_EQ(request.output.data(), second.data());
  EXPECT_EQ(request.output.count(), 2);
}

}  // namespace
}  // namespace tutti
