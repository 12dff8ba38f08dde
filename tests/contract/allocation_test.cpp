// allocation_test.cpp: a repeated call takes no memory from the heap: plans, transfers and operations are kept and reused.
// SPDX-License-Identifier: Apache-2.0
//
// With TUTTI_SHOW_ALLOCATIONS=1 every allocation prints its stack.
#include <execinfo.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdlib>
#include <new>
#include <vector>

#include "world.hpp"

namespace {

thread_local bool counts = false;  // set on the ranks' threads while they are looked at
std::atomic<int> allocations = 0;

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (counts) {
    ++allocations;
    if (std::getenv("TUTTI_SHOW_ALLOCATIONS") != nullptr) {
      void* frames[24];
      backtrace_symbols_fd(frames, backtrace(frames, 24), 2);
    }
  }
  void* memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

#pragma GCC diagnostic ignored "-Wmismatched-new-delete"  // it looks into one operator only
void* operator new(std::size_t bytes) { return allocate(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace tutti::contract {
namespace {

/// How many allocations the ranks' threads make in a round of 100 calls that were made before, in the quietest of 20 rounds:
/// a message that comes earlier than any before it makes a pool grow, now and then; a call that allocates does so every time.
template <class Calls>
int allocations_of_repeated(const Calls& calls) {
  int fewest = INT_MAX;
  make_thread_world({.size = 2})->run([&](Group& world) {
    auto mine = calls;  // with arrays of this rank's own
    for (int i = 0; i < 50; ++i) mine(world);
    for (int round = 0; round < 20; ++round) {
      world.barrier();
      if (world.rank() == 0) allocations = 0;
      world.barrier();
      counts = true;
      for (int i = 0; i < 100; ++i) mine(world);
      counts = false;
      world.barrier();
      if (world.rank() == 0) fewest = std::min<int>(fewest, allocations);
    }
  });
  return fewest;
}

TEST(RepeatedCalls, OfAllReduceTakeNothingFromTheHeap) {
  for (const std::size_t count : {1u, 1000u, 100'000u}) {
    EXPECT_EQ(allocations_of_repeated(
                  [data = std::vector<float>(count, 0.0f)](Group& world) mutable { world.all_reduce(data); }),
              0)
        << count << " elements";
  }
}

TEST(RepeatedCalls, ThatAreStartedAndWaitedForTakeNothingFromTheHeap) {
  EXPECT_EQ(allocations_of_repeated([data = std::vector<float>(1000, 0.0f)](Group& world) mutable {
              Work work = world.start(AllReduce{.data = data});
              work.wait();
            }),
            0);
}

TEST(RepeatedCalls, OfSmallFloatsAndStridedArraysTakeNothingFromTheHeap) {
  EXPECT_EQ(allocations_of_repeated([data = std::vector<bfloat16>(2000)](Group& world) mutable {
              const std::int64_t shape[] = {1000}, strides[] = {2};
              world.all_reduce(View(data.data(), DType::bfloat16, shape, strides));
            }),
            0);
}

TEST(RepeatedCalls, OfBroadcastAndBarrierTakeNothingFromTheHeap) {
  EXPECT_EQ(allocations_of_repeated([data = std::vector<int>(1000)](Group& world) mutable {
              world.broadcast(data);
              world.barrier();
            }),
            0);
}

TEST(RepeatedCalls, OfSendAndReceiveTakeNothingFromTheHeap) {
  EXPECT_EQ(allocations_of_repeated([data = std::vector<int>(1000)](Group& world) mutable {
              if (world.rank() == 0) {
                world.send(data, 1);
                world.recv(data, 1);
              } else {
                world.recv(data, 0);
                world.send(data, 0);
              }
            }),
            0);
}

}  // namespace
}  // namespace tutti::contract
