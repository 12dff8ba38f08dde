// arena.hpp: this process's memory that the other ranks of its host may map.
// SPDX-License-Identifier: Apache-2.0
//
// One memfd per rank, sparse and as large as it may ever become, so that the others map it once and for all. Nothing of it
// has a name in the file system: it is gone with the last process that maps it, also after kill -9. Blocks are committed
// when they are allocated (fallocate): running out of memory is an error here, never a SIGBUS later. Freed blocks keep
// their pages up to a limit and are then given back to the system.
//
// A forked child sees the memory (it is shared, not copied) but may neither allocate nor free.
//
// Thread rule: any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include <tutti/error.hpp>

#include "base/environment.hpp"
#include "base/unique_fd.hpp"
#include "shm/blocks.hpp"
#include "shm/mapping.hpp"

namespace tutti::shm {

/// Where another process finds an arena: goes through the connector's exchange as text.
struct ArenaAddress {
  std::string host_id{};  // boot id of the machine, or what TUTTI_HOST_ID says
  std::int64_t process = 0;
  std::int32_t descriptor = -1;  // −1: this rank has no arena
  std::uint64_t bytes = 0;
  std::uint64_t token = 0;              // random; stands at the arena's beginning too, so that a wrong file is noticed
  std::uint64_t base = 0;               // where the process itself has it: for process_vm_readv
  std::uint64_t process_namespace = 0;  // in which `process` means something
  [[nodiscard]] std::string to_text() const;
  /// MalformedMessage for anything that to_text did not write.
  static ArenaAddress from_text(std::string_view text);
};

/// The first page of an arena. The doorbell is notified by whoever has news for a rank that sleeps (doorbell.hpp).
struct ArenaHeader {
  std::uint64_t token;
  alignas(128) std::atomic<std::uint32_t> doorbell;
  alignas(128) std::atomic<std::uint32_t> asleep;
};
static_assert(sizeof(ArenaHeader) <= Blocks::page && std::atomic<std::uint32_t>::is_always_lock_free);

struct ArenaOptions {
  std::uint64_t bytes = 0;               // room in all, virtual; 0: as much as there is memory on the machine
  std::uint64_t commit_limit = 0;        // what may be committed; 0: what the memory limits of this process leave
  std::uint64_t keep_limit = 256 << 20;  // free blocks keep their pages up to this
  std::string host_id{};                 // empty: the machine's boot id
  int ranks = 1;                         // of this host, which will all map each other's: they share the address space
  bool siblings_may_read = true;         // see docs/decisions/0006-who-may-read-a-rank.md
  /// Host id from TUTTI_HOST_ID, commit limit from TUTTI_SHM_LIMIT, siblings_may_read from TUTTI_SHM_ATTACH.
  static ArenaOptions from(const Environment& environment);
};

/// There is not so much memory, or not so much room in the arena.
class OutOfMemory : public Error {
  using Error::Error;
};

class Arena {
  enum class From : std::uint8_t { rest, reserve };

 public:
  /// Throws Unsupported with the reason: no memfd here, too little address space or memory.
  explicit Arena(const ArenaOptions& options = {});
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  [[nodiscard]] const ArenaAddress& address() const { return address_; }
  [[nodiscard]] ArenaHeader& header() const { return *reinterpret_cast<ArenaHeader*>(mapping_->base()); }
  [[nodiscard]] const std::shared_ptr<Mapping>& mapping() const { return mapping_; }

  /// Zeroed on first use, committed, aligned to `alignment` (a power of two, at most 2 MiB). Throws OutOfMemory,
  /// saying how much was asked for and how much there is.
  [[nodiscard]] std::byte* allocate(std::size_t bytes, std::size_t alignment = 128) {
    return allocate(bytes, alignment, From::reserve);
  }
  /// Sets memory aside for what allocate() will have to give later, when it is too late to do without. OutOfMemory if there
  /// is not so much.
  void reserve(std::uint64_t bytes);
  /// The same as allocate(), but leaves alone what was set aside: for what a program can do without.
  [[nodiscard]] std::byte* allocate_spare(std::size_t bytes, std::size_t alignment = 128) {
    return allocate(bytes, alignment, From::rest);
  }
  /// Not to be called while a peer may still read or write the block: see quarantine in memory.hpp.
  void free(std::byte* block);
  [[nodiscard]] bool contains(const void* data, std::size_t bytes) const;
  [[nodiscard]] std::uint64_t offset_of(const void* data) const;  // of an address inside
  [[nodiscard]] std::uint64_t committed_bytes() const;

 private:
  void open_file();
  void map_room(const ArenaOptions& options);
  void commit(Range pages);
  void release_pages(Range pages);
  void give_back_beyond(std::uint64_t keep);
  void check_affordable(std::uint64_t asked, std::uint64_t more);
  std::byte* allocate(std::size_t bytes, std::size_t alignment, From from);
  [[nodiscard]] Range make_room(std::uint64_t bytes, std::uint64_t alignment);

  ArenaAddress address_;
  UniqueFd file_;
  std::shared_ptr<Mapping> mapping_;
  mutable std::mutex mutex_;
  Blocks blocks_{Range{}};
  std::uint64_t commit_limit_ = 0, keep_limit_ = 0, reserved_ = 0;
};

/// The machine's boot id, or what TUTTI_HOST_ID says (tests make several "hosts" of one machine by it).
std::string host_id_of_machine(const Environment& environment = {});

}  // namespace tutti::shm
