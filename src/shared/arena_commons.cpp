// arena_commons.cpp: the arenas of one host's ranks as the memory that a circle has in common.
// SPDX-License-Identifier: Apache-2.0
#include "shared/arena_commons.hpp"

#include <fmt/format.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "engine/execution.hpp"
#include "shared/flags.hpp"
#include "shm/bell.hpp"

namespace tutti::shared {

/// Who is done with what was offered, as the members' `taken` flags say; after this member has departed, as they said last, since
/// the others' seats may be used for something else then.
class ArenaCommons::TakenLedger final : public shm::Ledger {
 public:
  TakenLedger(std::shared_ptr<shm::Neighbours> neighbours, const std::vector<int>& members,
              std::vector<const std::atomic<std::uint64_t>*> taken)
      : neighbours_(std::move(neighbours)) {
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (members[i] == neighbours_->rank()) continue;
      peers_.push_back(members[i]);
      taken_.push_back(taken[i]);
    }
  }
  [[nodiscard]] std::span<const int> peers() const override { return peers_; }
  [[nodiscard]] bool is_done(int world_rank, std::uint64_t stamp) const override {
    const auto at = std::find(peers_.begin(), peers_.end(), world_rank) - peers_.begin();
    const auto index = static_cast<std::size_t>(at);
    switch (stage_.load(std::memory_order_acquire)) {
      case Stage::all_departed: return true;
      case Stage::departed: return reached(last_taken_[index], stamp);
      default: return reached(taken_[index]->load(std::memory_order_acquire), stamp);
    }
  }
  void depart() {
    for (const auto* taken : taken_) last_taken_.push_back(taken->load(std::memory_order_acquire));
    stage_.store(Stage::departed, std::memory_order_release);
  }
  void all_departed() { stage_.store(Stage::all_departed, std::memory_order_release); }

 private:
  enum class Stage : std::uint8_t { open, departed, all_departed };

  std::shared_ptr<shm::Neighbours> neighbours_;  // whose mappings the flags lie in
  std::vector<int> peers_;
  std::vector<const std::atomic<std::uint64_t>*> taken_;
  std::vector<std::uint64_t> last_taken_;
  std::atomic<Stage> stage_ = Stage::open;
};

ArenaCommons::ArenaCommons(Parts parts) : parts_(std::move(parts)) {
  for (const int member : parts_.members) {
    if (member != parts_.neighbours->rank()) headers_.push_back(&parts_.neighbours->header(member));
  }
}

ArenaCommons::~ArenaCommons() {
  if (ledger_) ledger_->all_departed();
}

std::byte* ArenaCommons::allocate(std::size_t bytes) { return parts_.neighbours->arena().allocate_spare(bytes, 4096); }

void ArenaCommons::free(std::byte* block) { parts_.neighbours->arena().free(block); }

std::uint64_t ArenaCommons::offset_of(const std::byte* own) const { return parts_.neighbours->arena().offset_of(own); }

std::byte* ArenaCommons::at(int index, std::uint64_t offset, std::size_t bytes) const {
  return parts_.neighbours->at(parts_.members[static_cast<std::size_t>(index)], offset, bytes);
}

std::optional<std::uint64_t> ArenaCommons::offer(const std::byte* data, std::size_t bytes, std::uint64_t stamp) {
  if (!parts_.memory || !parts_.neighbours->arena().contains(data, bytes)) return std::nullopt;
  if (!parts_.memory->offer(data, ledger_, stamp)) return std::nullopt;
  return offset_of(data);
}

void ArenaCommons::read(int index, std::uint64_t address, std::byte* to, std::size_t bytes) {
  const int member = parts_.members[static_cast<std::size_t>(index)];
  const auto process = static_cast<pid_t>(parts_.neighbours->process_of(member));
  while (bytes > 0) {
    const iovec local{.iov_base = to, .iov_len = bytes};
    const iovec remote{.iov_base = reinterpret_cast<void*>(address), .iov_len = bytes};
    const ssize_t read = process_vm_readv(process, &local, 1, &remote, 1, 0);
    if (read <= 0) {
      if (read < 0 && errno == EINTR) continue;
      throw TransferFailed(fmt::format("cannot read the memory of rank {} (process {}): {}", member, process,
                                       read == 0 ? "nothing came" : std::strerror(errno)),
                           index, TransferFailed::Reason::link);
    }
    to += read;
    address += static_cast<std::uint64_t>(read);
    bytes -= static_cast<std::size_t>(read);
  }
}

void ArenaCommons::connected(std::vector<const std::atomic<std::uint64_t>*> taken) {
  ledger_ = std::make_shared<TakenLedger>(parts_.neighbours, parts_.members, std::move(taken));
}

void ArenaCommons::departing() {
  if (ledger_) ledger_->depart();
}

}  // namespace tutti::shared
