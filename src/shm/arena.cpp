// arena.cpp: the memory file of a rank, its pages and its blocks.
// SPDX-License-Identifier: Apache-2.0
#include "shm/arena.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>

#include <tutti/error.hpp>

#include "shm/cross_memory.hpp"
#include "shm/limits.hpp"

namespace tutti::shm {
namespace {

#ifndef MFD_NOEXEC_SEAL
constexpr unsigned MFD_NOEXEC_SEAL = 0x0008U;
#endif
#ifndef MADV_POPULATE_WRITE
constexpr int MADV_POPULATE_WRITE = 23;
#endif

constexpr std::uint64_t smallest_room = 16u << 20;
constexpr std::uint64_t address_space_of_process = std::uint64_t{1}
                                                   << 47;  // 128 TiB: x86-64, and what arm64 has at least
constexpr std::uint64_t commit_at_once = 64u << 20;  // fallocate starts over after a signal: small enough to get done

std::string reason_of(int error) { return std::strerror(error); }

[[noreturn]] void refuse(std::string_view why, std::string_view what_to_try) {
  throw Unsupported(fmt::format("shared memory of this rank: {}; {}", why, what_to_try));
}

std::string bytes_text(std::uint64_t bytes) { return format_bytes(static_cast<std::int64_t>(bytes)); }

std::uint64_t random_token() {
  std::uint64_t token = 0;
  while (token == 0) {
    if (getrandom(&token, sizeof token, 0) != static_cast<ssize_t>(sizeof token) && errno != EINTR) {
      refuse(fmt::format("the system gave no random number: {}", reason_of(errno)), "check /dev/urandom");
    }
  }
  return token;
}

std::uint64_t process_namespace() {
  struct stat status {};
  return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

// RAM, or less where this process and its local peers could not map each other's. Half of the address space is left to
// everything else.
std::uint64_t room_for(const ArenaOptions& options) {
  if (options.bytes > 0) return options.bytes;
  const std::uint64_t address_space = std::min(address_space_left().bytes, address_space_of_process);
  const std::uint64_t share = address_space / 2 / static_cast<std::uint64_t>(std::max(options.ranks, 1));
  return std::max(std::min({memory_of_machine(), share, file_bytes_max().bytes}), smallest_room);
}

}  // namespace

ArenaOptions ArenaOptions::from(const Environment& environment) {
  ArenaOptions options;
  options.host_id = host_id_of_machine(environment);
  options.commit_limit = static_cast<std::uint64_t>(environment.bytes("TUTTI_SHM_LIMIT").value_or(0));
  options.siblings_may_read = environment.flag("TUTTI_SHM_ATTACH").value_or(true);
  return options;
}

Arena::Arena(const ArenaOptions& options) : commit_limit_(options.commit_limit), keep_limit_(options.keep_limit) {
  open_file();
  map_room(options);
  address_.host_id = options.host_id.empty() ? host_id_of_machine() : options.host_id;
  address_.process = getpid();
  address_.process_namespace = process_namespace();
  address_.descriptor = file_.get();
  address_.token = random_token();
  address_.base = reinterpret_cast<std::uintptr_t>(mapping_->base());

  commit({.offset = 0, .bytes = Blocks::page});
  new (mapping_->base()) ArenaHeader{.token = address_.token, .doorbell = 0, .asleep = 0};
  blocks_ = Blocks({.offset = Blocks::page, .bytes = mapping_->bytes() - Blocks::page});
  Mapping::announce(address_.token, mapping_);
  if (options.siblings_may_read) let_siblings_read();
}

Arena::~Arena() = default;

void Arena::open_file() {
  int file = memfd_create("tutti", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
  if (file < 0 && errno == EINVAL) file = memfd_create("tutti", MFD_CLOEXEC | MFD_ALLOW_SEALING);  // before Linux 6.3
  if (file < 0) {
    refuse(fmt::format("memfd_create failed: {}", reason_of(errno)),
           errno == EMFILE || errno == ENFILE
               ? "raise the number of open files (ulimit -n)"
               : "allow it in the container's seccomp profile, or use the backend native (TCP)");
  }
  file_ = UniqueFd(file);
  fchmod(file, S_IRUSR | S_IWUSR);
}

void Arena::map_room(const ArenaOptions& options) {
  std::uint64_t room = std::max(room_for(options) / Blocks::page, std::uint64_t{2}) * Blocks::page;
  if (const Allowance largest = file_bytes_max(); room > largest.bytes) {
    refuse(fmt::format("{} of room are more than {} allows ({})", bytes_text(room), largest.source,
                       bytes_text(largest.bytes)),
           "raise it, or use the backend native (TCP)");
  }
  // A room that was asked for is not made smaller in silence.
  const std::uint64_t least = options.bytes > 0 ? room : std::min(room, smallest_room);
  for (;; room = std::max(room / 2 / Blocks::page * Blocks::page, least)) {
    mapping_ = Mapping::of_file(file_.get(), room, Mapping::Owner::self);
    if (mapping_) break;
    if (room <= least) {
      const Allowance left = address_space_left();
      refuse(fmt::format("{} of address space cannot be had ({}; {})", bytes_text(room), reason_of(errno), left.source),
             "raise ulimit -v, or use the backend native (TCP)");
    }
  }
  // Nobody can cut the file under those who map it: that would be their SIGBUS.
  if (ftruncate(file_.get(), static_cast<off_t>(room)) != 0 ||
      fcntl(file_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    refuse(fmt::format("a memory file of {} cannot be made: {}", bytes_text(room), reason_of(errno)),
           "use the backend native (TCP)");
  }
  address_.bytes = room;
}

void Arena::commit(Range pages) {
  for (std::uint64_t done = 0; done < pages.bytes;) {
    const std::uint64_t now = std::min(pages.bytes - done, commit_at_once);
    if (fallocate(file_.get(), 0, static_cast<off_t>(pages.offset + done), static_cast<off_t>(now)) == 0) {
      done += now;
    } else if (errno != EINTR) {
      const int error = errno;
      release_pages({.offset = pages.offset, .bytes = done});
      throw OutOfMemory(
          fmt::format("shared memory of this rank: {} cannot be committed: {}; free some memory, or raise the "
                      "limit of the machine or container",
                      bytes_text(pages.bytes), reason_of(error)));
    }
  }
  // Page tables now, not one fault per page in the first collective. Without it (before Linux 5.14) only slower.
  madvise(mapping_->base() + pages.offset, pages.bytes, MADV_POPULATE_WRITE);
}

void Arena::release_pages(Range pages) {
  if (pages.bytes == 0) return;
  while (fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(pages.offset),
                   static_cast<off_t>(pages.bytes)) != 0 &&
         errno == EINTR) {}
}

void Arena::give_back_beyond(std::uint64_t keep) {
  if (blocks_.free_bytes() <= keep) return;
  for (const Range pages : blocks_.spare_pages(Blocks::page)) {
    release_pages(pages);
    blocks_.uncommitted(pages);
    if (blocks_.free_bytes() <= keep) return;
  }
}

// `more` bytes of pages for a block of `asked`.
void Arena::check_affordable(std::uint64_t asked, std::uint64_t more) {
  const auto left = [&]() -> Allowance {
    if (commit_limit_ > 0) {
      return {.bytes = commit_limit_ - std::min(commit_limit_, blocks_.committed_bytes() + reserved_),
              .source = "the limit of shared memory (TUTTI_SHM_LIMIT)"};
    }
    constexpr std::uint64_t worth_a_look = 1u << 20;  // reading the limits takes some tens of microseconds
    if (more < worth_a_look) return {};
    Allowance system = memory_left();
    system.bytes -= system.bytes / 32;  // the last bytes belong to those who cannot ask first
    return system;
  };
  if (left().bytes >= more) return;
  give_back_beyond(0);
  const Allowance limit = left();
  if (limit.bytes >= more) return;
  throw OutOfMemory(
      fmt::format("shared memory of this rank: {} asked for, {} left of {} ({} in use); make the arrays smaller, "
                  "free some, or raise that limit",
                  bytes_text(asked), bytes_text(limit.bytes), limit.source, bytes_text(blocks_.used_bytes())));
}

Range Arena::make_room(std::uint64_t bytes, std::uint64_t alignment) {
  const bool may_fit = bytes < address_.bytes;
  auto pages = may_fit ? blocks_.pages_for(bytes, alignment) : std::nullopt;
  if (!pages && may_fit) {
    give_back_beyond(0);
    pages = blocks_.pages_for(bytes, alignment);
  }
  if (!pages) {
    throw OutOfMemory(
        fmt::format("shared memory of this rank: no room for {} in {} of address space ({} in use); make the arrays "
                    "smaller, or raise ulimit -v",
                    bytes_text(bytes), bytes_text(address_.bytes), bytes_text(blocks_.used_bytes())));
  }
  return *pages;
}

void Arena::reserve(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  check_affordable(bytes, bytes);
  reserved_ += bytes;
}

std::byte* Arena::allocate(std::size_t bytes, std::size_t alignment, From from) {
  if (!std::has_single_bit(alignment) || alignment > Blocks::huge_page) {
    throw InvalidArgument(
        fmt::format("shared memory: an alignment of {} bytes; use a power of two up to 2 MiB", alignment));
  }
  if (getpid() != address_.process) {
    throw Unsupported("shared memory: a forked child cannot allocate in its parent's arena; call init() in the child");
  }
  const std::lock_guard lock(mutex_);
  // Sizes beyond the room do not get as far as the arithmetic, which they could overflow.
  auto offset = bytes < address_.bytes ? blocks_.take(bytes, alignment) : std::nullopt;
  if (!offset) {
    const Range pages = make_room(bytes, alignment);
    const std::uint64_t before = reserved_;
    if (from == From::reserve) reserved_ -= std::min<std::uint64_t>(reserved_, pages.bytes);
    try {
      check_affordable(bytes, pages.bytes);
      commit(pages);
    } catch (const OutOfMemory&) {
      reserved_ = before;
      throw;
    }
    blocks_.committed(pages);
    offset = blocks_.take(bytes, alignment);
  }
  return mapping_->base() + *offset;
}

void Arena::free(std::byte* block) {
  if (block == nullptr || getpid() != address_.process) return;
  const std::lock_guard lock(mutex_);
  if (!contains(block, 1) || !blocks_.give(offset_of(block))) {
    throw InvalidArgument("shared memory: free() of an address where no block begins");
  }
  give_back_beyond(keep_limit_);
}

bool Arena::contains(const void* data, std::size_t bytes) const {
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  return address >= address_.base && address - address_.base <= address_.bytes &&
         bytes <= address_.bytes - (address - address_.base);
}

std::uint64_t Arena::offset_of(const void* data) const {
  return reinterpret_cast<std::uintptr_t>(data) - address_.base;
}

std::uint64_t Arena::committed_bytes() const {
  const std::lock_guard lock(mutex_);
  return blocks_.committed_bytes() + Blocks::page;
}

std::string host_id_of_machine(const Environment& environment) {
  if (auto forced = environment.get("TUTTI_HOST_ID")) return *forced;
  return boot_id();
}

}  // namespace tutti::shm
