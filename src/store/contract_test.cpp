// contract_test.cpp: what every store promises, tested on each of them.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <functional>
#include <latch>
#include <thread>
#include <vector>

#include <tutti/error.hpp>

#include "store/file_store.hpp"
#include "store/limits.hpp"
#include "store/memory_store.hpp"
#include "store/prefix_store.hpp"
#include "store/tcp_server.hpp"
#include "store/tcp_store.hpp"

namespace tutti {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TimePoint in(Duration wait) { return std::chrono::steady_clock::now() + wait; }
TimePoint soon() { return in(20s); }

// Something ranks can open a store on. Each open() is what one more rank would do.
class Place {
 public:
  virtual ~Place() = default;
  virtual std::shared_ptr<Store> open() = 0;
};

class MemoryPlace : public Place {
 public:
  std::shared_ptr<Store> open() override { return store_; }

 private:
  std::shared_ptr<Store> store_ = memory_store();
};

class FilePlace : public Place {
 public:
  FilePlace() {
    std::string pattern = testing::TempDir() + "tutti_store_XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~FilePlace() override { std::filesystem::remove_all(folder_); }
  std::shared_ptr<Store> open() override { return file_store(folder_ / "meeting"); }

 private:
  std::filesystem::path folder_;
};

class TcpPlace : public Place {
 public:
  explicit TcpPlace(const wire::Address& address, wire::Encryption encryption = wire::Encryption::none)
      : encryption_(encryption), server_({.address = address, .secret = secret_, .encryption = encryption}) {}
  std::shared_ptr<Store> open() override {
    const wire::HostPort where{server_.address().host(), server_.address().port()};
    return tcp_store({.server = where, .secret = secret_, .encryption = encryption_, .deadline = soon()});
  }

 private:
  wire::Secret secret_ = wire::make_secret();
  wire::Encryption encryption_;
  TcpStoreServer server_;
};

class PrefixPlace : public Place {
 public:
  std::shared_ptr<Store> open() override { return prefix_store(prefix_store(below_.open(), "job 7"), "group"); }

 private:
  TcpPlace below_{wire::Address::loopback()};
};

struct Kind {
  std::string name;
  std::function<std::unique_ptr<Place>()> make;
};

class StoreContract : public testing::TestWithParam<Kind> {
 protected:
  std::unique_ptr<Place> place_ = GetParam().make();
  std::shared_ptr<Store> store_ = place_->open();
};

INSTANTIATE_TEST_SUITE_P(
    Stores, StoreContract,
    testing::Values(Kind{"memory", [] { return std::make_unique<MemoryPlace>(); }},
                    Kind{"file", [] { return std::make_unique<FilePlace>(); }},
                    Kind{"tcp", [] { return std::make_unique<TcpPlace>(wire::Address::loopback()); }},
                    Kind{"tcp_v6", [] { return std::make_unique<TcpPlace>(wire::Address::loopback_v6()); }},
                    Kind{"tls",
                         [] { return std::make_unique<TcpPlace>(wire::Address::loopback(), wire::Encryption::tls); }},
                    Kind{"prefix", [] { return std::make_unique<PrefixPlace>(); }}),
    [](const auto& row) { return row.param.name; });

TEST_P(StoreContract, WhatOneSetsTheOthersGet) {
  const auto other = place_->open();
  store_->set("k", "v", soon());
  EXPECT_EQ(other->get("k", soon()), "v");
  EXPECT_EQ(other->try_get("k", soon()), "v");
  store_->set("k", "w", soon());
  EXPECT_EQ(other->get("k", soon()), "w");
}

TEST_P(StoreContract, KeysAndValuesAreAnyBytes) {
  std::string every_byte(256, '\0');
  for (std::size_t i = 0; i < 256; ++i) every_byte[i] = static_cast<char>(i);
  for (const std::string& key :
       {every_byte, std::string(), std::string("../../x"), std::string("a/b"), std::string(1000, 'k')}) {
    store_->set(key, every_byte + key, soon());
    EXPECT_EQ(place_->open()->get(key, soon()), every_byte + key);
  }
  store_->set("empty", "", soon());
  EXPECT_EQ(store_->try_get("empty", soon()), "");
}

TEST_P(StoreContract, AMissingKeyIsNothing) {
  EXPECT_EQ(store_->try_get("k", soon()), std::nullopt);
  EXPECT_FALSE(store_->remove("k", soon()));
}

TEST_P(StoreContract, LargeValuesArriveWhole) {
  std::string large(9'000'000, 'x');
  for (std::size_t i = 0; i < large.size(); i += 1000) large[i] = static_cast<char>(i / 1000);
  const auto other = place_->open();
  store_->set("large", large, soon());
  EXPECT_TRUE(other->get("large", soon()) == large);
}

TEST_P(StoreContract, WhatIsTooLargeIsTheCallersMistakeAndHarmsNothing) {
  const std::string long_key(store::key_bytes_max + 1, 'k');
  const std::string long_value(store::value_bytes_max + 1, 'v');
  EXPECT_THROW(store_->set(long_key, "", soon()), InvalidArgument);
  EXPECT_THROW((void)store_->get(long_key, soon()), InvalidArgument);
  EXPECT_THROW((void)store_->try_get(long_key, soon()), InvalidArgument);
  EXPECT_THROW((void)store_->add(long_key, 1, soon()), InvalidArgument);
  EXPECT_THROW((void)store_->remove(long_key, soon()), InvalidArgument);
  EXPECT_THROW(store_->set("k", long_value, soon()), InvalidArgument);
  EXPECT_THROW((void)store_->compare_set("k", std::nullopt, long_value, soon()), InvalidArgument);
  EXPECT_EQ(store_->try_get("k", soon()), std::nullopt);
}

TEST_P(StoreContract, GetAndWaitWaitForTheKey) {
  const auto other = place_->open();
  std::latch started(2);
  std::string got;
  std::jthread getter([&] {
    started.count_down();
    got = other->get("late", soon());
  });
  std::jthread waiter([&] {
    started.count_down();
    store_->wait("late", soon());
  });
  started.wait();
  EXPECT_THROW((void)store_->get("never", in(20ms)), Timeout);  // the others wait by now, and may still be woken
  place_->open()->set("late", "here", soon());
  getter.join();
  waiter.join();
  EXPECT_EQ(got, "here");
}

TEST_P(StoreContract, WaitingEndsAtTheDeadlineAndNamesTheKey) {
  const TimePoint start = std::chrono::steady_clock::now();
  for (const bool fetch : {true, false}) {
    try {
      if (fetch) {
        (void)store_->get("the missing one", in(30ms));
      } else {
        store_->wait("the missing one", in(30ms));
      }
      FAIL() << "there was nothing to get";
    } catch (const Timeout& timeout) {
      EXPECT_THAT(timeout.what(), testing::AllOf(HasSubstr("the missing one"), HasSubstr("nobody set it")));
    }
  }
  EXPECT_GE(std::chrono::steady_clock::now() - start, 60ms);
  store_->set("the missing one", "x", soon());
  EXPECT_EQ(store_->get("the missing one", soon()), "x") << "the store is usable after a timeout";
}

TEST_P(StoreContract, CountersStartAtZeroAndReadAsText) {
  EXPECT_EQ(store_->add("n", 5, soon()), 5);
  EXPECT_EQ(place_->open()->add("n", -7, soon()), -2);
  EXPECT_EQ(store_->get("n", soon()), "-2");
  store_->set("n", "40", soon());
  EXPECT_EQ(store_->add("n", 2, soon()), 42);
  EXPECT_EQ(store_->add("n", 0, soon()), 42);
}

TEST_P(StoreContract, AddRefusesWhatIsNoCounterAndLeavesIt) {
  for (const std::string value : {"", "12x", "hello", "9223372036854775808"}) {
    store_->set("n", value, soon());
    EXPECT_THROW((void)store_->add("n", 1, soon()), InvalidArgument) << value;
    EXPECT_EQ(store_->get("n", soon()), value);
  }
  store_->set("n", "9223372036854775807", soon());
  EXPECT_THROW((void)store_->add("n", 1, soon()), InvalidArgument);
  EXPECT_EQ(store_->add("n", -1, soon()), 9223372036854775806);
}

TEST_P(StoreContract, CompareSetChangesOnlyWhatIsExpected) {
  EXPECT_EQ(store_->compare_set("k", "old", "new", soon()), "") << "the key is absent and stays so";
  EXPECT_EQ(store_->try_get("k", soon()), std::nullopt);
  EXPECT_EQ(store_->compare_set("k", std::nullopt, "first", soon()), "first");
  EXPECT_EQ(store_->compare_set("k", std::nullopt, "second", soon()), "first");
  EXPECT_EQ(store_->compare_set("k", "other", "second", soon()), "first");
  EXPECT_EQ(store_->compare_set("k", "first", "second", soon()), "second");
  EXPECT_EQ(place_->open()->get("k", soon()), "second");
  EXPECT_EQ(store_->compare_set("k", "second", "", soon()), "");
  EXPECT_EQ(store_->compare_set("k", "", "third", soon()), "third") << "an empty value is not an absent one";
}

TEST_P(StoreContract, RemovedKeysAreGone) {
  store_->set("k", "v", soon());
  EXPECT_TRUE(place_->open()->remove("k", soon()));
  EXPECT_FALSE(store_->remove("k", soon()));
  EXPECT_EQ(store_->try_get("k", soon()), std::nullopt);
  EXPECT_EQ(store_->compare_set("k", std::nullopt, "again", soon()), "again");
}

TEST_P(StoreContract, AddAndCompareSetWakeThoseWhoWait) {
  std::jthread first([&] { EXPECT_EQ(store_->get("sum", soon()), "3"); });
  std::jthread second([&] { EXPECT_EQ(store_->get("swapped", soon()), "x"); });
  const auto other = place_->open();
  (void)other->add("sum", 3, soon());
  (void)other->compare_set("swapped", std::nullopt, "x", soon());
}

TEST_P(StoreContract, ManyThreadsOnOneStoreLoseNothing) {
  constexpr int threads = 8, rounds = 25;
  const auto other = place_->open();
  std::vector<std::jthread> team;
  for (int t = 0; t < threads; ++t) {
    team.emplace_back([&, t] {
      Store& mine = t % 2 == 0 ? *store_ : *other;
      for (int i = 0; i < rounds; ++i) {
        (void)mine.add("n", 1, soon());
        const std::string round = std::to_string(i);
        mine.set("k" + std::to_string(t) + "/" + round, round, soon());
        EXPECT_EQ(mine.get("k" + std::to_string((t + 1) % threads) + "/" + round, soon()), round);
      }
    });
  }
  team.clear();
  EXPECT_EQ(store_->get("n", soon()), std::to_string(threads * rounds));
}

TEST_P(StoreContract, OfManyThatCompareSetOneWins) {
  constexpr int threads = 8;
  std::vector<std::string> winners(threads);
  {
    std::vector<std::jthread> team;
    for (std::size_t t = 0; t < threads; ++t) {
      team.emplace_back(
          [&, t] { winners[t] = place_->open()->compare_set("root", std::nullopt, std::to_string(t), soon()); });
    }
  }
  EXPECT_THAT(winners, testing::Each(winners.front()));
  EXPECT_EQ(store_->get("root", soon()), winners.front());
}

TEST(PrefixStore, PartsDoNotSeeEachOther) {
  const auto below = memory_store();
  const auto a = prefix_store(below, "a"), b = prefix_store(below, "b");
  a->set("k", "1", soon());
  EXPECT_EQ(b->try_get("k", soon()), std::nullopt);
  EXPECT_EQ(below->get("a/k", soon()), "1");
  EXPECT_THROW((void)prefix_store(nullptr, "x"), InvalidArgument);
}

}  // namespace
}  // namespace tutti
