// mapping.cpp: maps memory files, and finds those that this process has mapped already.
// SPDX-License-Identifier: Apache-2.0
#include "shm/mapping.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <mutex>

namespace tutti::shm {
namespace {

constexpr std::uint64_t huge_page = 2u << 20;

// The only state below the public API that belongs to the process and not to a rank: the address space does, too.
struct Announced {
  std::mutex mutex;
  std::map<std::uint64_t, std::weak_ptr<Mapping>> by_token;
};

// Never destroyed: ranks may end after main() has.
Announced& announced_here() {
  static auto* const here = new Announced;
  return *here;
}

// Address space of `bytes`, aligned to a huge page; nullptr and errno where there is none.
std::byte* reserve(std::uint64_t bytes) {
  void* const room = mmap(nullptr, bytes + huge_page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<std::byte*>(room);
  const auto address = reinterpret_cast<std::uintptr_t>(room);
  const std::uint64_t before = (huge_page - address % huge_page) % huge_page;
  if (before > 0) munmap(begin, before);
  munmap(begin + before + bytes, huge_page - before);
  return begin + before;
}

}  // namespace

std::shared_ptr<Mapping> Mapping::of_file(int file, std::uint64_t bytes, Owner owner) {
  std::byte* const room = reserve(bytes);
  if (room == nullptr) return nullptr;
  if (mmap(room, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, file, 0) == MAP_FAILED) {
    const int error = errno;
    munmap(room, bytes);
    errno = error;
    return nullptr;
  }
  madvise(room, bytes, MADV_HUGEPAGE);  // where the system allows them for shared memory
  // A core file would hold all of it, the holes as pages that are made while it is written: more than there is memory.
  madvise(room, bytes, MADV_DONTDUMP);
  // A child has no business in a peer's memory, and would keep that of a dead rank.
  if (owner == Owner::peer) madvise(room, bytes, MADV_DONTFORK);
  return std::shared_ptr<Mapping>(new Mapping(room, bytes));
}

Mapping::Mapping(std::byte* base, std::uint64_t bytes) : base_(base), bytes_(bytes), process_(getpid()) {}

Mapping::~Mapping() {
  // In a forked child this range may belong to something else by now.
  if (process_ == getpid()) munmap(base_, bytes_);
}

void Mapping::announce(std::uint64_t token, const std::shared_ptr<Mapping>& mapping) {
  Announced& here = announced_here();
  const std::lock_guard lock(here.mutex);
  std::erase_if(here.by_token, [](const auto& entry) { return entry.second.expired(); });
  here.by_token.insert_or_assign(token, mapping);
}

std::shared_ptr<Mapping> Mapping::announced(std::uint64_t token) {
  Announced& here = announced_here();
  const std::lock_guard lock(here.mutex);
  const auto found = here.by_token.find(token);
  return found == here.by_token.end() ? nullptr : found->second.lock();
}

}  // namespace tutti::shm
