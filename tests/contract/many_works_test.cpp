// many_works_test.cpp: ten thousand calls under way at once cost what one hundred cost each, and end.
// SPDX-License-Identifier: Apache-2.0
//
// Not measured against a clock, but against the deadline of the calls: where a step took time in proportion to the calls under
// way, these never ended.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include <tutti/error.hpp>

#include "world_param.hpp"

namespace tutti::contract {
namespace {

using namespace std::chrono_literals;
using testing::Each;
using testing::HasSubstr;

constexpr int work_count = 10'000;

class ManyWorks : public InWorld {};

TEST_P(ManyWorks, OfCollectivesEndInTheirOrder) {
  on_every_rank([](Group& world) {
    std::vector<int> data(work_count, 1), ended;
    std::vector<Work> works;
    for (int& each : data) works.push_back(world.start(AllReduce{.data = std::span(&each, 1)}));
    for (int i = 0; i < work_count; i += 100)
      works[static_cast<std::size_t>(i)].then([&, i](std::exception_ptr) { ended.push_back(i); });
    for (Work& work : works) work.wait();
    EXPECT_THAT(data, Each(world.size()));
    EXPECT_EQ(ended.size(), work_count / 100u);
  });
}

TEST_P(ManyWorks, OnTheSameMemoryHappenOneAfterTheOther) {
  on_every_rank([](Group& world) {
    std::vector<std::int64_t> data(3, 1);
    std::vector<Work> works;
    for (int i = 0; i < work_count; ++i)
      works.push_back(world.start(AllReduce{.data = data, .op = i % 500 == 0 ? Op::sum : Op::max}));
    for (auto work = works.rbegin(); work != works.rend(); ++work) work->wait();
    std::int64_t expected = 1;
    for (int i = 0; i < work_count; i += 500) expected *= world.size();
    EXPECT_THAT(data, Each(expected));
  });
}

TEST_P(ManyWorks, OfMessagesEndInAnyOrder) {
  on_every_rank([](Group& world) {
    const int to = (world.rank() + 1) % world.size(), from = (world.rank() + world.size() - 1) % world.size();
    std::vector<int> sent(work_count, world.rank()), got(work_count, -1);
    std::vector<Work> works;
    for (int& each : got) works.push_back(world.start(Receive{.data = std::span(&each, 1), .from = from}));
    for (int& each : sent) works.push_back(world.start(Send{.data = std::span(&each, 1), .to = to}));
    for (auto work = works.rbegin(); work != works.rend(); ++work) work->wait();
    EXPECT_THAT(got, Each(from));
  });
}

// The window of calls that have been begun is not where they wait for each other: those who are late are named, however many are
// behind the one that waits.
TEST_P(ManyWorks, EndTogetherWhenOneOfTheirRanksDoesNotCome) {
  on_every_rank([](Group& world) {
    std::vector<int> data(1000, 1);
    if (world.rank() == 1) {
      EXPECT_THROW(world.recv(data, 0), Timeout);
      return;
    }
    std::vector<Work> works;
    for (int& each : data) works.push_back(world.start(AllReduce{.data = std::span(&each, 1), .timeout = 1s}));
    for (auto work = works.rbegin(); work != works.rend(); ++work) EXPECT_THROW(work->wait(), Timeout);
    try {
      world.barrier();
      ADD_FAILURE() << "the group is not broken";
    } catch (const Timeout& error) {
      EXPECT_THAT(error.what(), HasSubstr("waiting for rank 1"));
      EXPECT_THAT(error.what(), HasSubstr("has not entered the call"));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Contract, ManyWorks,
                         testing::Values(WorldParam{WorldKind::tcp, 3}, WorldParam{WorldKind::shm, 3}), world_name);

}  // namespace
}  // namespace tutti::contract
