// atomics.hpp: the machine's atomics as a policy, so that a protocol can also be run on a model of memory.
// SPDX-License-Identifier: Apache-2.0
//
// Protocols between ranks are templates on this policy. The tests run them on interleave.hpp's atomics instead, which
// try every order that the C++ memory model permits, not only those that this machine shows.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/sanitizers.hpp"

namespace tutti::shm {

/// Prefetches a cache line for writing, which invalidates it in the readers' caches. Does not wait.
inline void expect_write(const void* line) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, 1);
#endif
}

/// Between two looks at a word that another core is about to write. Without it the processor looks ahead of time many times over, and
/// has to take all of that back when the word changes: a twelfth of the time of a small message.
inline void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

struct MachineAtomics {
  using Word = std::atomic<std::uint32_t>;
  using LongWord = std::atomic<std::uint64_t>;

  /// Memory that the protocol protects.
  template <class T>
  class Plain {
   public:
    Plain() = default;
    Plain(T value) : value_(value) {}  // NOLINT: as plain as it gets
    [[nodiscard]] T get() const { return value_; }
    void set(T value) { value_ = value; }

   private:
    T value_{};
  };

  /// Full fence between a store and a later load of another word: of two ranks that do this with exchanged roles, at
  /// least one sees the other's store.
  static void fence() {
#if TUTTI_THREAD_SANITIZER
    // It knows no fences. It needs none either, as every datum is published by a release store; but the processor does,
    // and a locked instruction is one.
    std::atomic<std::uint32_t> own{0};
    own.fetch_add(1, std::memory_order_seq_cst);
#elif defined(__clang__) && defined(__x86_64__)
    asm volatile("lock; orq $0, (%%rsp)" ::: "memory", "cc");  // half the time of the mfence that clang chooses
#else
    std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
  }
};

}  // namespace tutti::shm
