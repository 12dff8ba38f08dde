// local_peers.cpp: finds, checks and maps the arenas of the other ranks on this host.
// SPDX-License-Identifier: Apache-2.0
#include "shm/local_peers.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <tutti/error.hpp>

#include "base/made_fd.hpp"
#include "shm/cross_memory.hpp"
#include "shm/limits.hpp"

namespace tutti::shm {
namespace {

struct Found {
  std::shared_ptr<Mapping> mapping{};
  std::string reason{};
};

std::string why_not_opened(const ArenaAddress& address, int error) {
  if (error == ENOENT && access("/proc/self/fd", X_OK) != 0)
    return "/proc is not mounted, through which ranks find each other's memory; mount it";
  if (error == ENOENT) {
    return fmt::format(
        "process {} is gone, or hidden from this one: /proc may show another PID namespace, or not show other users' "
        "processes",
        address.process);
  }
  if (error == EACCES || error == EPERM) {
    return fmt::format("process {} may not be looked into: another user, or a process that cannot be traced",
                       address.process);
  }
  return fmt::format("the memory of process {} cannot be opened: {}", address.process, describe_system_error(error));
}

// Checked before it is opened: opening a pipe or a device of an unrelated process could have side effects.
std::string why_not_an_arena(const struct stat& status, const ArenaAddress& address) {
  if (!S_ISREG(status.st_mode) || static_cast<std::uint64_t>(status.st_size) != address.bytes) {
    return fmt::format("descriptor {} of process {} is not its shared memory", address.descriptor, address.process);
  }
  if (status.st_uid != geteuid()) return fmt::format("process {} runs as another user", address.process);
  return {};
}

Found open_arena(const ArenaAddress& address) {
  const std::string path = fmt::format("/proc/{}/fd/{}", address.process, address.descriptor);
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return {.reason = why_not_opened(address, errno)};
  if (auto reason = why_not_an_arena(status, address); !reason.empty()) return {.reason = std::move(reason)};
  const UniqueFd file(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!file) return {.reason = why_not_opened(address, errno)};
  // Once more: the descriptor may have become another file in between. This one cannot shrink any more: it is sealed.
  if (fstat(file.get(), &status) != 0) return {.reason = why_not_opened(address, errno)};
  if (auto reason = why_not_an_arena(status, address); !reason.empty()) return {.reason = std::move(reason)};
  const int seals = fcntl(file.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    return {.reason = fmt::format("descriptor {} of process {} is not its shared memory", address.descriptor,
                                  address.process)};
  }
  auto mapping = Mapping::of_file(file.get(), address.bytes, Mapping::Owner::peer);
  if (!mapping) {
    return {.reason = fmt::format("{} of address space for the memory of process {} cannot be had ({}; {})",
                                  format_bytes(static_cast<std::int64_t>(address.bytes)), address.process,
                                  std::strerror(errno), address_space_left().source)};
  }
  return {.mapping = std::move(mapping)};
}

}  // namespace

LocalPeers::LocalPeers(std::shared_ptr<Arena> own, int rank, const std::vector<ArenaAddress>& addresses)
    : own_(std::move(own)), rank_(rank) {
  at_.reserve(addresses.size());
  for (const ArenaAddress& address : addresses) at_.push_back(reach(address));
}

LocalPeers::~LocalPeers() = default;

LocalPeers::Peer LocalPeers::reach(const ArenaAddress& address) const {
  Peer peer{.bytes = address.bytes, .process = address.process};
  const ArenaAddress& self = own_->address();
  if (address.descriptor < 0) {
    peer.reason = "it has no shared memory";
  } else if (address.host_id != self.host_id) {
    peer.reason = "it is on another host";
  } else if (address.process_namespace != self.process_namespace) {
    peer.reason = "it runs in another process namespace (another container)";
  }
  if (!peer.reason.empty()) return peer;

  Found found;
  const bool same_process = address.process == self.process;
  if (same_process) found.mapping = Mapping::announced(address.token);
  if (!found.mapping) found = open_arena(address);
  peer.reason = std::move(found.reason);
  if (!found.mapping) return peer;
  if (reinterpret_cast<const ArenaHeader*>(found.mapping->base())->token != address.token) {
    peer.reason = fmt::format("the shared memory of process {} is another one than it told", address.process);
    return peer;
  }
  peer.mapping = std::move(found.mapping);
  peer.base = peer.mapping->base();
  peer.cross_memory = can_read(address.process, address.base, address.token);
  return peer;
}

std::byte* LocalPeers::at(int world_rank, std::uint64_t offset, std::uint64_t bytes) const {
  const Peer& owner = peer(world_rank);
  if (owner.base == nullptr || offset > owner.bytes || bytes > owner.bytes - offset) {
    throw Error(fmt::format(
        "rank {}: {} bytes at {} of rank {}'s shared memory, which {}", rank_, bytes, offset, world_rank,
        owner.base == nullptr ? "is not mapped here: " + owner.reason : fmt::format("has {} bytes", owner.bytes)));
  }
  return owner.base + offset;
}

ArenaHeader& LocalPeers::header(int world_rank) const {
  return *reinterpret_cast<ArenaHeader*>(at(world_rank, 0, sizeof(ArenaHeader)));
}

}  // namespace tutti::shm
