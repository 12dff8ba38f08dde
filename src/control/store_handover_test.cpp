// store_handover_test.cpp: the store moves from rank to rank while messages are late, are lost, and come in any order.
// SPDX-License-Identifier: Apache-2.0
//
// A model of the control network at its worst: messages between two ranks keep their order and may vanish; floods of one origin
// arrive at every rank, in order, however late; that a rank has closed its links or is lost is noticed at any time after that.
#include "control/store_handover.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/random.hpp"
#include "control/job_store.hpp"
#include "control/overloaded.hpp"

namespace tutti::control {
namespace {

using namespace std::chrono_literals;
using Kind = store::Request::Kind;

struct Left {};  // closed its links
using News = std::variant<Goodbye, StoreMoved, Left, Lost>;

class Network {
 public:
  struct Rank {
    std::unique_ptr<JobStore> store;
    std::vector<std::deque<RoutedBody>> inbox;  // by sender
    std::vector<std::size_t> heard;             // by origin: how many of its news
    std::vector<News> news;                     // of this rank; the last ones of a rank that died never arrive
    std::vector<bool> leaves, is_lost;          // as this rank knows
    std::vector<std::shared_ptr<const JobStore::Asked>> asked;
    int to_ask = 0;
    bool is_leaving = false, is_gone = false, is_dead = false;
  };

  Network(int size, std::uint64_t seed, double lossy) : random_(seed), lossy_(lossy), ranks_(std::size_t(size)) {
    for (int me = 0; me < size; ++me) {
      Rank& rank = at(me);
      rank.inbox.resize(ranks_.size());
      rank.heard.resize(ranks_.size());
      rank.leaves.resize(ranks_.size());
      rank.is_lost.resize(ranks_.size());
      rank.to_ask = static_cast<int>(random_.between(1, 6));
      rank.store = std::make_unique<JobStore>(
          me, size, 1s,
          JobStore::Outside{.send = [this, me](int to, RoutedBody body) { post(me, to, std::move(body)); },
                            .flood = [this, me](StoreMoved moved) { tell(me, moved); },
                            .is_lost = [this, me](int who) { return at(me).is_lost[std::size_t(who)]; },
                            .is_there =
                                [this, me](int who) {
                                  return !at(me).is_lost[std::size_t(who)] && !at(me).leaves[std::size_t(who)];
                                }});
    }
  }

  Rank& at(int rank) { return ranks_[std::size_t(rank)]; }
  [[nodiscard]] int size() const { return static_cast<int>(ranks_.size()); }

  // One thing that can happen, or time passes.
  void step() {
    const int me = static_cast<int>(random_.below(ranks_.size()));
    Rank& rank = at(me);
    if (rank.is_gone || rank.is_dead) return;
    const int other = static_cast<int>(random_.below(ranks_.size()));
    switch (random_.below(8)) {
      case 0:
      case 1:
      case 2: return deliver(rank, other);
      case 3:
      case 4: return hear(rank, other);
      case 5: return ask(me, rank);
      case 6: return leave(me, rank);
      default: now_ += 20ms; (void)rank.store->poll(now_);
    }
  }
  // The processes end: what this rank's floods have not yet told anybody may get lost with it.
  void kill(int me) {
    Rank& rank = at(me);
    if (rank.is_gone || rank.is_dead) return;
    rank.is_dead = true;
    std::size_t told = 0;
    for (const Rank& each : ranks_) {
      if (!each.is_dead) told = std::max(told, each.heard[std::size_t(me)]);
    }
    rank.news.resize(told + random_.below(rank.news.size() - told + 1));
    rank.news.emplace_back(Lost{me, {}});
  }
  [[nodiscard]] bool is_over() {
    return std::ranges::all_of(ranks_, [](const Rank& each) { return each.is_gone || each.is_dead; });
  }

 private:
  void post(int from, int to, RoutedBody body) {
    if (!random_.chance(lossy_)) at(to).inbox[std::size_t(from)].push_back(std::move(body));
  }
  void tell(int me, const StoreMoved& moved) {
    at(me).news.emplace_back(moved);
    ++at(me).heard[std::size_t(me)];
    at(me).store->on_moved(now_, moved);
  }

  void deliver(Rank& rank, int from) {
    auto& inbox = rank.inbox[std::size_t(from)];
    if (inbox.empty() || rank.is_lost[std::size_t(from)]) return;
    const RoutedBody body = std::move(inbox.front());
    inbox.pop_front();
    std::visit(Overloaded{[&](const StoreAsked& m) { rank.store->on_asked(from, m); },
                          [&](const StoreAnswered& m) { rank.store->on_answered(m); },
                          [&](const StoreOffered& m) { rank.store->on_offered(from, m); },
                          [&](const StoreFetched& m) { rank.store->on_fetched(now_, from, m); },
                          [&](const StorePart& m) { rank.store->on_part(from, m); },
                          [](const auto&) { FAIL() << "no message of the store"; }},
               body);
  }

  // The death of a rank is noticed at any time, not after its last flood.
  void hear(Rank& rank, int origin) {
    const auto index = std::size_t(origin);
    const Rank& there = at(origin);
    std::size_t& heard = rank.heard[index];
    if (&there == &rank) return;
    if (there.is_dead && !rank.is_lost[index] && random_.chance(0.3)) return notice(rank, origin, Lost{origin, {}});
    if (heard < there.news.size()) notice(rank, origin, there.news[heard++]);
  }
  void notice(Rank& rank, int origin, const News& news) {
    const auto index = std::size_t(origin);
    std::visit(Overloaded{[&](const Goodbye& goodbye) {
                            rank.leaves[index] = true;
                            rank.store->rank_leaves(now_, origin, goodbye.has_store);
                          },
                          [&](const StoreMoved& moved) { rank.store->on_moved(now_, moved); },
                          [&](const Left&) { rank.store->rank_left(origin); },
                          [&](const Lost&) {
                            if (rank.is_lost[index]) return;
                            rank.is_lost[index] = true;
                            rank.store->rank_lost(now_, origin);
                          }},
               news);
  }

  void ask(int me, Rank& rank) {
    if (rank.is_leaving || rank.to_ask == 0) return;
    if (!rank.asked.empty() && !rank.asked.back()->has_ended()) return;
    --rank.to_ask;
    const std::string large = std::to_string(me) + std::string(random_.chance(0.5) ? 50'000 : 1, 'x');
    const bool adds = random_.chance(0.7);
    rank.asked.push_back(rank.store->ask(
        now_, {.kind = adds ? Kind::add : Kind::set, .key = adds ? "n" : large, .value = large, .amount = 1}));
  }

  void leave(int me, Rank& rank) {
    const bool is_done = rank.to_ask == 0 && rank.asked.back()->has_ended();
    if (!rank.is_leaving && is_done && random_.chance(0.3)) {
      rank.is_leaving = true;
      ++rank.heard[std::size_t(me)];
      rank.news.emplace_back(Goodbye{.positions = {}, .has_store = rank.store->leave(now_)});
    } else if (rank.is_leaving && !rank.store->must_stay()) {
      rank.is_gone = true;
      rank.news.emplace_back(Left{});
    }
  }

  Random random_;
  double lossy_;
  std::vector<Rank> ranks_;
  TimePoint now_{};
};

std::vector<std::int64_t> sums_of(Network& network) {
  std::vector<std::int64_t> sums;
  for (int rank = 0; rank < network.size(); ++rank) {
    for (const auto& each : network.at(rank).asked) {
      if (each->reply && each->request.kind == Kind::add) sums.push_back(each->reply->number);
    }
  }
  std::ranges::sort(sums);
  return sums;
}

constexpr int steps_max = 400'000;

TEST(StoreHandover, to_ranks_that_leave_in_any_order_loses_nothing_and_repeats_nothing) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Network network(2 + static_cast<int>(seed % 7), seed, seed % 2 == 0 ? 0.2 : 0);
    for (int step = 0; step < steps_max && !network.is_over(); ++step) network.step();
    ASSERT_TRUE(network.is_over()) << "seed " << seed << ": a rank waits for ever";
    std::size_t added = 0;
    for (int rank = 0; rank < network.size(); ++rank) {
      for (const auto& each : network.at(rank).asked) {
        ASSERT_TRUE(each->reply.has_value()) << "seed " << seed << ", rank " << rank;
        added += each->request.kind == Kind::add ? 1 : 0;
      }
    }
    const auto sums = sums_of(network);
    for (std::size_t i = 0; i < added; ++i) ASSERT_EQ(sums[i], std::int64_t(i) + 1) << "seed " << seed;
  }
}

TEST(StoreHandover, ends_every_request_whoever_dies_and_adds_nothing_twice) {
  int went_on = 0;
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    Network network(3 + static_cast<int>(seed % 6), seed, seed % 2 == 0 ? 0.2 : 0);
    Random random(seed);
    const bool while_leaving = random.chance(0.8);
    const int victim = static_cast<int>(random.below(while_leaving ? 2 : std::uint64_t(network.size())));
    const auto when = while_leaving ? -1 : random.between(0, 60 * network.size());
    const double in_handover = random.chance(0.5) ? 0 : 0.003, after_it = 0.1;
    for (int step = 0; step < steps_max && !network.is_over(); ++step) {
      network.step();
      const auto& dying = network.at(victim);
      const double chance = !while_leaving || !dying.is_leaving ? 0 : dying.news.size() > 1 ? after_it : in_handover;
      if (step == when || random.chance(chance)) network.kill(victim);
    }
    ASSERT_TRUE(network.is_over()) << "seed " << seed << ": a rank waits for ever";
    const auto sums = sums_of(network);
    EXPECT_EQ(std::ranges::adjacent_find(sums), sums.end()) << "seed " << seed << ": one sum was given twice";
    bool lost = false;
    for (int rank = 0; rank < network.size(); ++rank) {
      for (const auto& each : network.at(rank).asked) {
        EXPECT_EQ(each->lost.value_or(victim), victim) << "seed " << seed;
        lost = lost || each->lost.has_value();
      }
    }
    went_on += lost ? 0 : 1;
  }
  EXPECT_GT(went_on, 600);
  EXPECT_LT(went_on, 2800);
}

}  // namespace
}  // namespace tutti::control
