// arena.hpp: this process's memory that the other ranks of its host may map.
// SPDX-License-Identifier: Apache-2.0
//
// One memfd per rank, sparse and as large as it may ever become, so that the others map it once and for all. Nothing of it
// has a name in the file system: it is gone with the last process that maps it, also after kill -9. Blocks are committed
// when they are allocated (fallocate): running out of memory is an error here, never a SIGBUS later. Freed blocks keep
// their pages up to a limit and are then given back to the system.
//
// Thread rule: any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "base/unique_fd.hpp"

namespace tutti::shm {

/// Where another process finds an arena: goes through the connector's exchange as text.
struct ArenaAddress {
  std::string host_id{};    // boot id of the machine, or what TUTTI_HOST_ID says
  std::int64_t process = 0;
  std::int32_t descriptor = -1;
  std::uint64_t bytes = 0;
  std::uint64_t token = 0;  // random; stands at the arena's beginning too, so that a wrong file is noticed
  [[nodiscard]] std::string to_text() const;
  static ArenaAddress from_text(std::string_view text);
};

/// The first page of an arena. The bell is rung by whoever has news for a rank that sleeps (bell.hpp).
struct ArenaHeader {
  std::uint64_t token;
  alignas(128) std::atomic<std::uint32_t> bell;
  alignas(128) std::atomic<std::uint32_t> asleep;
};

struct ArenaOptions {
  std::uint64_t bytes = 0;         // room in all, virtual; 0: as much as there is memory on the machine
  std::uint64_t commit_limit = 0;  // what may be committed; 0: what the memory limits of this process leave
  std::string host_id{};           // empty: the machine's boot id
};

class Arena {
 public:
  /// Throws Unsupported with the reason: no memfd here, too little address space or memory.
  explicit Arena(const ArenaOptions& options = {});
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  [[nodiscard]] const ArenaAddress& address() const { return address_; }
  [[nodiscard]] ArenaHeader& header() const { return *reinterpret_cast<ArenaHeader*>(base_); }

  /// Zeroed on first use, committed, aligned to `alignment` (a power of two, at most 2 MiB). Throws Error when memory runs
  /// out, saying how much was asked for and how much there is.
  [[nodiscard]] std::byte* allocate(std::size_t bytes, std::size_t alignment = 128);
  /// Not to be called while a peer may still read or write the block: see quarantine in memory.hpp.
  void free(std::byte* block);
  [[nodiscard]] bool contains(const void* data, std::size_t bytes) const;
  [[nodiscard]] std::uint64_t offset_of(const void* data) const;  // of an address inside
  [[nodiscard]] std::uint64_t committed_bytes() const;

 private:
  ArenaAddress address_;
  UniqueFd file_;
  std::byte* base_ = nullptr;
  // Blocks by offset; the free ones are kept apart.
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> used_, free_;  // offset → bytes
  std::uint64_t end_ = 0;  // of what was ever handed out
  std::uint64_t committed_ = 0, commit_limit_ = 0;
};

/// The machine's boot id, or TUTTI_HOST_ID from the environment (tests make several "hosts" of one machine by it).
std::string host_id_of_machine();

}  // namespace tutti::shm
