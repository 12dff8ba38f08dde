// guarded.cpp: pages of slots, taken and given back.
// SPDX-License-Identifier: Apache-2.0
#include "base/guarded.hpp"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include <mutex>
#include <new>
#include <vector>

namespace tutti {
namespace {

constexpr std::size_t page_bytes = 4096;  // madvise and mlock round it up where pages are larger

// Belongs to the process, as its address space does.
class GuardedSlots {
 public:
  static GuardedSlots& of_process();

  std::byte* take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) add_page();
    std::byte* const slot = free_.back();
    free_.pop_back();
    return slot;
  }
  void give(std::byte* slot) {
    wipe(slot, guarded_bytes_max);
    const std::lock_guard lock(mutex_);
    free_.push_back(slot);
  }

 private:
  void add_page() {
    void* const page = mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) throw std::bad_alloc();
    madvise(page, page_bytes, MADV_DONTDUMP);
    mlock(page, page_bytes);  // not allowed everywhere (ulimit -l); then it may be swapped
    free_.reserve(free_.capacity() + page_bytes / guarded_bytes_max);
    for (std::size_t offset = 0; offset < page_bytes; offset += guarded_bytes_max)
      free_.push_back(static_cast<std::byte*>(page) + offset);
  }

  std::mutex mutex_;
  std::vector<std::byte*> free_;
};

// Never destroyed: secrets may end after main() has. A forked child drops secrets, too: no other thread may hold the lock
// when it begins.
GuardedSlots& GuardedSlots::of_process() {
  static GuardedSlots* const here = [] {
    pthread_atfork([] { of_process().mutex_.lock(); }, [] { of_process().mutex_.unlock(); },
                   [] { of_process().mutex_.unlock(); });
    return new GuardedSlots;
  }();
  return *here;
}

}  // namespace

std::shared_ptr<std::byte[]> guarded_memory() {
  return {GuardedSlots::of_process().take(), [](std::byte* slot) { GuardedSlots::of_process().give(slot); }};
}

void wipe(void* data, std::size_t bytes) { explicit_bzero(data, bytes); }

}  // namespace tutti
