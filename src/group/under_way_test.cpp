// under_way_test.cpp: the lists of calls that have not ended.
// SPDX-License-Identifier: Apache-2.0
#include "group/under_way.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti {
namespace {

using testing::ElementsAre;

std::shared_ptr<Operation> call(std::uint64_t sequence) {
  auto operation = std::make_shared<Operation>();
  operation->reset();
  operation->request.signature.sequence = sequence;
  return operation;
}

TEST(CallQueue, finds_calls_by_number_also_where_numbers_are_missing) {
  CallQueue queue;
  std::vector<std::shared_ptr<Operation>> calls;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    calls.push_back(call(10 + 3 * i));
    queue.add(calls.back());
  }
  for (std::uint64_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(queue.find(10 + 3 * i), calls[i].get());
    EXPECT_EQ(queue.find(11 + 3 * i), nullptr);
  }
  EXPECT_EQ(queue.find(0), nullptr);
  EXPECT_EQ(queue.find(5000), nullptr);
}

TEST(CallQueue, keeps_what_has_ended_until_all_before_it_have) {
  CallQueue queue;
  std::vector<std::shared_ptr<Operation>> calls;
  for (std::uint64_t i = 0; i < 4; ++i) {
    calls.push_back(call(i));
    queue.add(calls.back());
  }
  calls[1]->end(nullptr);
  calls[2]->end(nullptr);
  queue.drop_ended();
  EXPECT_EQ(queue.oldest(), calls[0]);
  EXPECT_EQ(queue.size(), 4u);
  EXPECT_EQ(queue.find(1), nullptr);
  calls[0]->end(nullptr);
  queue.drop_ended();
  EXPECT_EQ(queue.oldest(), calls[3]);
  EXPECT_EQ(queue.first(), 3u);
  EXPECT_EQ(calls[0].use_count(), 1);
  calls[3]->end(nullptr);
  queue.drop_ended();
  EXPECT_TRUE(queue.empty());
}

TEST(CallQueue, places_hold_while_it_grows_and_goes_round) {
  CallQueue queue;
  std::uint64_t next = 0;
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 7; ++i) queue.add(call(next++));
    for (int i = 0; i < 5; ++i) {
      queue.oldest()->end(nullptr);
      queue.drop_ended();
    }
    for (auto place = queue.first(); place < queue.end(); ++place)
      ASSERT_EQ(queue.at(place)->request.signature.sequence, place);
  }
  EXPECT_EQ(queue.size(), 100u);
}

std::vector<const Operation*> all_news(MessageSet& set) {
  std::vector<const Operation*> news;
  while (const Operation* const operation = set.take_news()) news.push_back(operation);
  return news;
}

TEST(MessageSet, gives_out_those_with_news_once_and_in_order) {
  MessageSet set;
  std::vector<std::shared_ptr<Operation>> messages;
  for (std::uint64_t i = 0; i < 6; ++i) {
    messages.push_back(call(0));
    set.add(messages.back());
  }
  EXPECT_EQ(set.take_news(), nullptr);
  for (const std::size_t i : {4u, 1u, 5u, 1u}) set.note_news(*messages[i]);  // a second time changes nothing
  EXPECT_THAT(all_news(set), ElementsAre(messages[4].get(), messages[1].get(), messages[5].get()));
  EXPECT_EQ(set.take_news(), nullptr);
  EXPECT_EQ(set.all().size(), 6u);
}

TEST(MessageSet, forgets_the_news_of_one_that_is_removed) {
  MessageSet set;
  std::vector<std::shared_ptr<Operation>> messages;
  for (std::uint64_t i = 0; i < 5; ++i) {
    messages.push_back(call(0));
    set.add(messages.back());
  }
  for (const std::size_t i : {3u, 0u, 2u}) set.note_news(*messages[i]);
  set.remove(*messages[0]);
  set.remove(*messages[4]);
  set.remove(*messages[4]);  // it is not in there any more
  EXPECT_THAT(all_news(set), ElementsAre(messages[3].get(), messages[2].get()));
  for (const std::size_t i : {1u, 2u, 3u}) set.remove(*messages[i]);
  EXPECT_TRUE(set.empty());
}

}  // namespace
}  // namespace tutti
