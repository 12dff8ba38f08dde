// bare_loops.cpp: two cores that pass bytes one way, with no library around: a yardstick for broadcast and barrier, not a bound.
// SPDX-License-Identifier: Apache-2.0
//
//   bare_loops [seconds for each way]
//
// Two threads, each on a core of its own, do nothing but store, look and copy. For a barrier each stores a number and waits for the
// other's. For a broadcast the root copies its array into slots that both see, piece by piece, and the other copies it out; roots
// take turns, and arrays are rewritten before every batch, as in `tutti bench broadcast`. Every length is tried with pieces of every
// size and several numbers of slots; the best of them is shown.
#include <fmt/format.h>
#include <immintrin.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Counter = std::uint64_t;

struct alignas(256) Flag {  // more than a line apart: processors fetch neighbours, too
  std::atomic<Counter> value{0};
};

void wait_for(const Flag& flag, Counter value) {
  constexpr std::uint64_t spins_max = std::uint64_t{1} << 34;  // a minute and more: the other thread is gone
  for (std::uint64_t spins = 0; flag.value.load(std::memory_order_acquire) < value; ++spins) {
    if (spins == spins_max) std::abort();
    _mm_pause();
  }
}

/// The first two cores that this process may use.
void keep_to_core(int index) {
  cpu_set_t allowed, one;
  CPU_ZERO(&one);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed) && index-- == 0) CPU_SET(cpu, &one);
  }
  sched_setaffinity(0, sizeof one, &one);
}

/// Runs `program(rank)` on two threads; the new threads start with the affinity of this one.
void on_two_cores(const std::function<void(int)>& program) {
  std::thread threads[2];
  for (int rank = 0; rank < 2; ++rank) {
    threads[rank] = std::thread([&program, rank] {
      keep_to_core(rank);
      program(rank);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

class Barrier {
 public:
  void pass(int rank) {
    const Counter round = ++rounds_[rank].value;
    flags_[rank].value.store(round, std::memory_order_release);
    wait_for(flags_[1 - rank], round);
  }

 private:
  struct alignas(256) Own {
    Counter value = 0;
  };
  Own rounds_[2];
  Flag flags_[2];
};

/// Pieces from one rank to the other, through a ring of slots.
class Channel {
 public:
  Channel(std::size_t chunk_bytes, std::size_t slots)
      : chunk_(chunk_bytes), slots_(slots), memory_(chunk_bytes * slots) {}

  void leave(const std::byte* from, std::size_t bytes) {
    for (std::size_t at = 0; at < bytes; at += chunk_) {
      if (left_ >= slots_) wait_for(taken_flag_, left_ - slots_ + 1);
      std::memcpy(slot(left_), from + at, std::min(chunk_, bytes - at));
      left_flag_.value.store(++left_, std::memory_order_release);
    }
  }
  void take(std::byte* to, std::size_t bytes) {
    for (std::size_t at = 0; at < bytes; at += chunk_) {
      wait_for(left_flag_, taken_ + 1);
      std::memcpy(to + at, slot(taken_), std::min(chunk_, bytes - at));
      taken_flag_.value.store(++taken_, std::memory_order_release);
    }
  }

 private:
  std::byte* slot(Counter number) { return memory_.data() + number % slots_ * chunk_; }

  const std::size_t chunk_, slots_;
  std::vector<std::byte> memory_;
  alignas(256) Counter left_ = 0;
  alignas(256) Counter taken_ = 0;
  Flag left_flag_, taken_flag_;
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

/// µs per call of the slower rank, median of batches. `prepare` and `call` get the rank and the number of the call in its batch.
double measure(double seconds, int batch, const std::function<void(int, int)>& prepare,
               const std::function<void(int, int)>& call) {
  Barrier barrier;
  std::vector<double> times[2];
  std::atomic<bool> is_over{false};
  on_two_cores([&](int rank) {
    for (const auto end = Clock::now() + std::chrono::duration<double>(seconds); !is_over;) {
      for (int i = 0; i < batch; ++i) prepare(rank, i);
      barrier.pass(rank);
      const auto begin = Clock::now();
      for (int i = 0; i < batch; ++i) call(rank, i);
      times[rank].push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / batch);
      if (rank == 0 && Clock::now() > end && times[0].size() > 4) is_over = true;
      barrier.pass(rank);  // both see it before the same batch
    }
  });
  for (std::size_t i = 0; i < times[0].size(); ++i) times[0][i] = std::max(times[0][i], times[1][i]);
  return median(times[0]);
}

double broadcast(double seconds, std::size_t bytes, std::size_t chunk, std::size_t slots) {
  constexpr std::size_t arrays_bytes = 32 << 20;
  const int batch = static_cast<int>(std::clamp<std::size_t>(arrays_bytes / bytes, 4, 256));
  std::vector<std::byte> arrays[2] = {std::vector<std::byte>(bytes * static_cast<std::size_t>(batch)),
                                      std::vector<std::byte>(bytes * static_cast<std::size_t>(batch))};
  Channel channels[2] = {{chunk, slots}, {chunk, slots}};
  const auto array = [&](int rank, int i) { return arrays[rank].data() + static_cast<std::size_t>(i) * bytes; };
  return measure(
      seconds, batch, [&](int rank, int i) { std::memset(array(rank, i), rank + i, bytes); },
      [&](int rank, int i) {
        const int root = i % 2;
        if (rank == root) channels[root].leave(array(rank, i), bytes);
        if (rank != root) channels[root].take(array(rank, i), bytes);
      });
}

void show_broadcast(double seconds, std::size_t bytes) {
  double best = 0;
  std::size_t best_chunk = 0, best_slots = 0;
  for (std::size_t chunk = std::min<std::size_t>(bytes, 1024); chunk <= std::min<std::size_t>(bytes, 1 << 20);
       chunk *= 2) {
    for (const std::size_t slots : {2, 4, 16}) {
      const double time = broadcast(seconds, bytes, chunk, slots);
      if (best_slots != 0 && time >= best) continue;
      best = time, best_chunk = chunk, best_slots = slots;
    }
  }
  fmt::print("broadcast {:>9}  {:10.3f} us   in pieces of {} bytes through {} slots\n", bytes, best, best_chunk,
             best_slots);
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 0.1;
  Barrier barrier;
  fmt::print("barrier              {:10.3f} us\n",
             measure(
                 seconds, 1000, [](int, int) {}, [&](int rank, int) { barrier.pass(rank); }));
  constexpr std::size_t kib = 1024, mib = 1024 * kib;
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{64}, std::size_t{512}, 4 * kib, 32 * kib, 256 * kib, mib,
                                  4 * mib, 16 * mib, 64 * mib}) {
    show_broadcast(seconds, bytes);
  }
}
