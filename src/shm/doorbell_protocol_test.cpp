// doorbell_protocol_test.cpp: no order of steps, of two and three ranks, sleeps through a ring; without its fences some do.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "shm/doorbell.hpp"
#include "verify/interleave.hpp"

namespace tutti::shm {
namespace {

using interleave::Checker;
using interleave::ModelAtomics;
using interleave::Verdict;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr auto acquire = std::memory_order_acquire, release = std::memory_order_release;

struct WithoutFence : ModelAtomics {
  static void fence() {}
};

// What a rank has for others to write, as in its arena.
struct Desk {
  ModelAtomics::Word doorbell, asleep;
  Desk(const std::string& owner) {
    doorbell.called(owner + "'s doorbell");
    asleep.called(owner + "'s asleep");
  }
};

// As Doorbell and its users do: sleeps until `look` finds something.
template <class Atomics, class Look, class Announce>
void sleep_until(Desk& own, Look look, Announce announce) {
  Checker::current().repeat_until([&] {
    if (look()) return true;
    const auto heard = announce(own.doorbell, own.asleep);
    const bool found = look();
    if (!found) own.doorbell.sleep_while(heard);
    DoorbellProtocol<Atomics>::leave(own.asleep);
    return found;
  });
}
template <class Atomics, class Look>
void sleep_until(Desk& own, Look look) {
  sleep_until<Atomics>(own, look, DoorbellProtocol<Atomics>::announce);
}

template <class Atomics>
void notify_after_fence(Desk& peer) {
  using Protocol = DoorbellProtocol<Atomics>;
  if (!Protocol::is_asleep(peer.asleep) || !Protocol::take_announcement(peer.asleep)) return;
  Protocol::count_notification(peer.doorbell);
  peer.doorbell.wake_sleepers();
}

template <class Atomics>
void notify(Desk& peer) {
  Atomics::fence();
  notify_after_fence<Atomics>(peer);
}

template <class SleeperAtomics, class WakerAtomics>
Verdict one_message() {
  Checker checker;
  Desk sleeper("sleeper");
  ModelAtomics::Word flag;
  flag.called("flag");
  ModelAtomics::Plain<int> data;
  return checker.run({[&] {
                        sleep_until<SleeperAtomics>(sleeper, [&] { return flag.load(acquire) == 1; });
                        checker.require(data.get() == 7, "another value");
                      },
                      [&] {
                        data.set(7);
                        flag.store(1, release);
                        notify<WakerAtomics>(sleeper);
                      }});
}

TEST(DoorbellProtocol, no_notification_is_slept_through) {
  const Verdict verdict = one_message<ModelAtomics, ModelAtomics>();
  EXPECT_THAT(verdict.failure, IsEmpty());
  EXPECT_GT(verdict.states, 50U) << "hardly anything was tried";
}

TEST(DoorbellProtocol, without_either_fence_a_notification_is_slept_through) {
  const auto slept_through = HasSubstr("rank 0 sleeps on sleeper's doorbell for ever");
  EXPECT_THAT((one_message<WithoutFence, ModelAtomics>().failure), slept_through);
  EXPECT_THAT((one_message<ModelAtomics, WithoutFence>().failure), slept_through);
}

TEST(DoorbellProtocol, a_notification_that_is_not_counted_is_slept_through) {
  Checker checker;
  Desk sleeper("sleeper");
  ModelAtomics::Word flag;
  const Verdict verdict =
      checker.run({[&] { sleep_until<ModelAtomics>(sleeper, [&] { return flag.load(acquire) == 1; }); },
                   [&] {
                     flag.store(1, release);
                     ModelAtomics::fence();
                     if (DoorbellProtocol<ModelAtomics>::is_asleep(sleeper.asleep)) sleeper.doorbell.wake_sleepers();
                   }});
  EXPECT_THAT(verdict.failure, HasSubstr("for ever"));
}

// One rank waits for what two others publish.
template <class Announce, class Notify>
Verdict two_messages(Announce announce, Notify notify_sleeper) {
  Checker checker;
  Desk sleeper("sleeper");
  ModelAtomics::Word first, second;
  const auto tell = [&](ModelAtomics::Word& flag) {
    flag.store(1, release);
    notify_sleeper(sleeper);
  };
  const auto look = [&] { return first.load(acquire) == 1 && second.load(acquire) == 1; };
  return checker.run(
      {[&] { sleep_until<ModelAtomics>(sleeper, look, announce); }, [&] { tell(first); }, [&] { tell(second); }});
}

using Protocol = DoorbellProtocol<ModelAtomics>;

TEST(DoorbellProtocol, a_rank_that_waits_for_two_hears_both) {
  EXPECT_THAT((two_messages(Protocol::announce, notify<ModelAtomics>).failure), IsEmpty());
}

TEST(DoorbellProtocol, an_announcement_that_is_taken_after_the_notification_was_counted_is_slept_through) {
  const auto count_first = [](Desk& peer) {
    ModelAtomics::fence();
    if (!Protocol::is_asleep(peer.asleep)) return;
    Protocol::count_notification(peer.doorbell);
    peer.doorbell.wake_sleepers();
    static_cast<void>(Protocol::take_announcement(peer.asleep));
  };
  EXPECT_THAT((two_messages(Protocol::announce, count_first).failure), HasSubstr("for ever"));
}

TEST(DoorbellProtocol, a_rank_that_announces_before_it_reads_the_count_is_not_woken) {
  const auto announce_first = [](ModelAtomics::Word& doorbell, ModelAtomics::Word& asleep) {
    asleep.store(1, std::memory_order_relaxed);
    ModelAtomics::fence();
    return doorbell.load(acquire);
  };
  EXPECT_THAT((two_messages(announce_first, notify<ModelAtomics>).failure), HasSubstr("for ever"));
}

TEST(DoorbellProtocol, one_fence_serves_for_two_sleepers) {
  Checker checker;
  Desk left("left"), right("right");
  ModelAtomics::Word flag;
  const auto await = [&](Desk& own) { sleep_until<ModelAtomics>(own, [&] { return flag.load(acquire) == 1; }); };
  const Verdict verdict = checker.run({[&] { await(left); }, [&] { await(right); },
                                       [&] {
                                         flag.store(1, release);
                                         ModelAtomics::fence();
                                         for (Desk* desk : {&left, &right}) notify_after_fence<ModelAtomics>(*desk);
                                       }});
  EXPECT_THAT(verdict.failure, IsEmpty());
}

// Announcements and notifies of earlier rounds are still in flight in later ones.
TEST(DoorbellProtocol, two_ranks_that_answer_each_other_never_stop) {
  Checker checker;
  Desk left("left"), right("right");
  ModelAtomics::Word ping, pong;
  ping.called("ping");
  pong.called("pong");
  constexpr std::uint32_t rounds = 2;
  const Verdict verdict =
      checker.run({[&] {
                     for (std::uint32_t round = 1; round <= rounds; ++round) {
                       ping.store(round, release);
                       notify<ModelAtomics>(right);
                       sleep_until<ModelAtomics>(left, [&] { return pong.load(acquire) == round; });
                     }
                   },
                   [&] {
                     for (std::uint32_t round = 1; round <= rounds; ++round) {
                       sleep_until<ModelAtomics>(right, [&] { return ping.load(acquire) == round; });
                       pong.store(round, release);
                       notify<ModelAtomics>(left);
                     }
                   }});
  EXPECT_THAT(verdict.failure, IsEmpty());
}

}  // namespace
}  // namespace tutti::shm
