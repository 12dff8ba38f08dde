// sim_world.cpp: ranks of a simulated cluster, with blocking bodies.
// SPDX-License-Identifier: Apache-2.0
//
// Each body runs on a thread of its own, but only one thread runs at any moment: the cluster hands the baton to a rank when
// something happened for it, and gets it back when the rank would sleep (Transport::wait). So the same body runs here, in
// virtual time and replayable by its seed, and over TCP. Handing over costs far more than polling; so while a body sleeps, the
// cluster polls for it, and wakes it when its calls have ended or its sleep is over.
#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <semaphore>
#include <thread>
#include <vector>

#include "forwarding_transport.hpp"
#include "group/core.hpp"
#include "group/runtime.hpp"
#include "verify/simulated_cluster.hpp"
#include "world.hpp"

namespace tutti::contract {
namespace {

using namespace std::chrono_literals;

/// A body that can be interrupted.
class Fiber {
 public:
  explicit Fiber(std::function<void()> body)
      : thread_([this, body = std::move(body)] {
          resumed_.acquire();
          body();
          finished_ = true;
          paused_.release();
        }) {}

  void resume() {
    resumed_.release();
    paused_.acquire();
  }
  /// From inside the body.
  void pause() {
    paused_.release();
    resumed_.acquire();
  }
  [[nodiscard]] bool finished() const { return finished_; }

 private:
  std::binary_semaphore resumed_{0}, paused_{0};
  bool finished_ = false;  // handed over with the baton
  std::jthread thread_;
};

/// Keeps this thread, and those it starts, on one core for a while: only one of them runs anyway, and handing over to another
/// core takes many times as long.
class OnOneCore {
 public:
  OnOneCore() {
    pthread_getaffinity_np(pthread_self(), sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(sched_getcpu()), &one);
    pthread_setaffinity_np(pthread_self(), sizeof one, &one);
  }
  OnOneCore(const OnOneCore&) = delete;
  OnOneCore& operator=(const OnOneCore&) = delete;
  ~OnOneCore() { pthread_setaffinity_np(pthread_self(), sizeof before_, &before_); }

 private:
  cpu_set_t before_{};
};

/// The cluster's endpoint, as something a Runtime can own; sleeping gives the baton back.
class FiberTransport final : public messages::ForwardingTransport {
 public:
  /// Where a body sleeps, and until when.
  struct Sleep {
    Fiber* fiber = nullptr;  // the body that runs on this rank, or none
    TimePoint until = TimePoint::min();
  };
  FiberTransport(Transport& endpoint, Sleep& sleep) : ForwardingTransport(endpoint), sleep_(sleep) {}

  void wait(TimePoint until, Events events) override {
    endpoint_.wait(until, events);
    sleep_.until = until;
    if (sleep_.fiber != nullptr) sleep_.fiber->pause();
  }
  bool heard_from(int peer) override { return endpoint_.heard_from(peer); }
  [[nodiscard]] bool is_flushed() const override { return endpoint_.is_flushed(); }

 private:
  Sleep& sleep_;
};

class SimulatedWorld final : public World {
 public:
  explicit SimulatedWorld(const WorldOptions& options)
      : cluster_({.size = options.size, .seed = options.seed, .ranks_per_node = std::max(options.ranks_per_node, 1)}),
        ranks_(static_cast<std::size_t>(options.size)) {
    for (int rank = 0; rank < options.size; ++rank) join(options, rank);
    for (int rank = 0; rank < options.size; ++rank) {
      cluster_.set_program(rank, [this, rank] { return step(rank); });
    }
  }

  ~SimulatedWorld() override {
    for (Rank& rank : ranks_) rank.world = Group();
  }

  [[nodiscard]] int size() const override { return cluster_.size(); }

  void run(const std::function<void(Group& world)>& body) override {
    const OnOneCore pinned;
    std::vector<std::unique_ptr<Fiber>> fibers;
    for (Rank& rank : ranks_) {
      fibers.push_back(std::make_unique<Fiber>([&rank, &body] { run_rank(rank.world, body); }));
      rank.sleep = {.fiber = fibers.back().get()};
    }
    for (int rank = 0; rank < size(); ++rank) cluster_.wake(rank);
    const auto all_ended = [&] {
      return std::ranges::all_of(ranks_, [](const Rank& rank) { return rank.sleep.fiber == nullptr; });
    };
    if (!cluster_.run_until(all_ended, 24h)) {
      // Every call has a deadline, so this is a bug of the library; bodies that never end cannot be taken down.
      std::cerr << "a simulated rank did not end in a day of virtual time\n";
      std::abort();
    }
  }

 private:
  struct Rank {
    std::shared_ptr<Runtime> runtime;
    Group world;
    FiberTransport::Sleep sleep;
  };

  void join(const WorldOptions& options, int number) {
    Rank& rank = ranks_[static_cast<std::size_t>(number)];
    Runtime::Parts parts;
    parts.clock = &cluster_.clock();
    parts.transport = std::make_unique<FiberTransport>(cluster_.endpoint(number), rank.sleep);
    parts.default_timeout = options.timeout;
    parts.table = options.table.empty() ? Table{} : table_from_text(options.table);
    parts.seed = options.seed + static_cast<std::uint64_t>(number);
    parts.oversubscribed = true;
    parts.threaded = false;
    GroupFacts facts{.rank = number, .size = options.size, .id = 1};
    for (int each = 0; each < options.size; ++each) {
      facts.world_of.push_back(each);
      parts.hosts.push_back(fmt::format("node{}", node_of_rank(options, each)));
      parts.node_of.push_back(node_of_rank(options, each));
    }
    if (node_count(options) > 1) facts.node_of = parts.node_of;
    rank.runtime = std::make_shared<Runtime>(std::move(parts));
    rank.world = Group(GroupCore::make(rank.runtime, std::move(facts), rank.runtime->parts().table));
    rank.runtime->start();
  }

  /// What a rank does with the processor: its body, or what the service thread would do.
  bool step(int number) {
    Rank& rank = ranks_[static_cast<std::size_t>(number)];
    if (rank.sleep.fiber == nullptr) return serve(number, rank.runtime->next_look());
    const TimePoint now = cluster_.clock().now();
    // With calls under way the runtime looks again soon; if it does not, they have ended.
    const auto calls_ended = [&] { return rank.runtime->next_look() > now + 20ms; };
    if (now < rank.sleep.until && !calls_ended()) {
      const bool moved = serve(number, rank.sleep.until);
      if (!calls_ended()) return moved;
    }
    rank.sleep.fiber->resume();
    if (!rank.sleep.fiber->finished()) return false;
    rank.sleep.fiber = nullptr;
    return true;
  }

  bool serve(int number, TimePoint next) {
    Rank& rank = ranks_[static_cast<std::size_t>(number)];
    const auto guard = rank.runtime->lock();
    const bool moved = rank.runtime->poll();
    cluster_.endpoint(number).wait(next, Transport::Events::all);
    return moved;
  }

  messages::SimulatedCluster cluster_;
  std::vector<Rank> ranks_;
};

}  // namespace

std::unique_ptr<World> make_simulated_world(const WorldOptions& options) {
  return std::make_unique<SimulatedWorld>(options);
}

}  // namespace tutti::contract
