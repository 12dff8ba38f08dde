// arena_segment.cpp: the arenas of one host's ranks as the memory that a group has in common.
// SPDX-License-Identifier: Apache-2.0
#include "intranode/arena_segment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <tutti/backend.hpp>

#include "intranode/flags.hpp"
#include "shm/cross_memory.hpp"
#include "shm/doorbell.hpp"

namespace tutti::intranode {

/// Who is done with what was offered, as the members' `consumed` flags say; after this member has departed, as they said last, since
/// the others' control blocks may be used for something else then.
class ArenaSegment::ConsumedLedger final : public shm::Ledger {
 public:
  ConsumedLedger(std::shared_ptr<shm::LocalPeers> local_peers, const std::vector<int>& members,
                 std::vector<const std::atomic<std::uint64_t>*> consumed)
      : local_peers_(std::move(local_peers)) {
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (members[i] == local_peers_->rank()) continue;
      peers_.push_back(members[i]);
      consumed_.push_back(consumed[i]);
    }
  }
  [[nodiscard]] std::span<const int> peers() const override { return peers_; }
  [[nodiscard]] bool is_done(int world_rank, std::uint64_t seq) const override {
    const auto at = std::find(peers_.begin(), peers_.end(), world_rank) - peers_.begin();
    const auto index = static_cast<std::size_t>(at);
    switch (stage_.load(std::memory_order_acquire)) {
      case Stage::all_departed: return true;
      case Stage::departed: return reached(last_consumed_[index], seq);
      default: return reached(consumed_[index]->load(std::memory_order_acquire), seq);
    }
  }
  void depart() {
    for (const auto* consumed : consumed_) last_consumed_.push_back(consumed->load(std::memory_order_acquire));
    stage_.store(Stage::departed, std::memory_order_release);
  }
  void all_departed() { stage_.store(Stage::all_departed, std::memory_order_release); }

 private:
  enum class Stage : std::uint8_t { open, departed, all_departed };

  std::shared_ptr<shm::LocalPeers> local_peers_;  // whose mappings the flags lie in
  std::vector<int> peers_;
  std::vector<const std::atomic<std::uint64_t>*> consumed_;
  std::vector<std::uint64_t> last_consumed_;
  std::atomic<Stage> stage_ = Stage::open;
};

ArenaSegment::ArenaSegment(Parts parts) : parts_(std::move(parts)) {
  for (const int member : parts_.members) {
    if (member != parts_.local_peers->rank()) headers_.push_back(&parts_.local_peers->header(member));
  }
}

ArenaSegment::~ArenaSegment() {
  if (ledger_) ledger_->all_departed();
}

std::byte* ArenaSegment::allocate(std::size_t bytes) { return parts_.local_peers->arena().allocate_spare(bytes, 4096); }

void ArenaSegment::free(std::byte* block) { parts_.local_peers->arena().free(block); }

std::uint64_t ArenaSegment::offset_of(const std::byte* own) const { return parts_.local_peers->arena().offset_of(own); }

std::byte* ArenaSegment::at(int index, std::uint64_t offset, std::size_t bytes) const {
  return parts_.local_peers->at(parts_.members[static_cast<std::size_t>(index)], offset, bytes);
}

std::optional<std::uint64_t> ArenaSegment::expose(const std::byte* data, std::size_t bytes, std::uint64_t seq) {
  if (!parts_.memory || !parts_.local_peers->arena().contains(data, bytes)) return std::nullopt;
  if (!parts_.memory->expose(data, ledger_, seq)) return std::nullopt;
  return offset_of(data);
}

void ArenaSegment::read(int index, std::uint64_t address, std::byte* to, std::size_t bytes) {
  const int member = parts_.members[static_cast<std::size_t>(index)];
  const std::int64_t process = parts_.local_peers->process_of(member);
  while (bytes > 0) {
    const std::int64_t read = shm::read_memory(process, address, to, static_cast<std::int64_t>(bytes));
    if (read == -EINTR) continue;
    if (read < 0) {
      throw TransferFailed(fmt::format("cannot read the memory of rank {} (process {}): {}", member, process,
                                       std::strerror(static_cast<int>(-read))),
                           index, TransferFailed::Reason::link);
    }
    to += read;
    address += static_cast<std::uint64_t>(read);
    bytes -= static_cast<std::size_t>(read);
  }
}

void ArenaSegment::connected(std::vector<const std::atomic<std::uint64_t>*> consumed) {
  ledger_ = std::make_shared<ConsumedLedger>(parts_.local_peers, parts_.members, std::move(consumed));
}

void ArenaSegment::departing() {
  if (ledger_) ledger_->depart();
}

}  // namespace tutti::intranode
