// ring_memory.hpp: reading the memory of another rank of this host.
// SPDX-License-Identifier: Apache-2.0
//
// Memory is read where it lies in the peer's arena, or by process_vm_readv. A key names a word in the owner's arena that holds the key's
// number for as long as the memory may be read: revoke() clears it before the memory changes, and a reader looks at it after the last
// byte.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include <tutti/link.hpp>

#include "link/ring_control_block.hpp"
#include "shm/local_peers.hpp"

namespace tutti::link {

// What a remote key of this host says.
struct RingKey {
  std::uint64_t number = 0;
  std::uint64_t address = 0;       // in the owner's process
  std::uint64_t arena_offset = 0;  // of the same bytes, or nowhere
  std::uint64_t word_offset = 0;   // of the word that holds the number
  std::uint64_t word_index = 0;    // the owner's
  static constexpr std::uint64_t nowhere = ~std::uint64_t{0};
};

// What the peer names as an offset in its arena may be anything: MalformedMessage if it lies outside.
const std::byte* in_arena(const shm::LocalPeers& local_peers, int rank, std::uint64_t offset, std::uint64_t bytes);

// See the functions of Link by these names.
class RingMemory {
 public:
  RingMemory(const RingOptions& options, std::shared_ptr<shm::LocalPeers> local_peers)
      : options_(options), local_peers_(std::move(local_peers)) {}

  RemoteKey expose(std::span<const std::byte> memory);
  void revoke(const RemoteKey& key);
  void revoke_all();
  [[nodiscard]] bool can_get(int rank, const RemoteKey& key, std::int64_t bytes) const;
  [[nodiscard]] bool is_exposed(int rank, const RemoteKey& key, std::int64_t bytes) const;
  GetStatus get(RemoteGet& get, std::int64_t bytes_max) const;

 private:
  using Word = std::atomic<std::uint64_t>;
  [[nodiscard]] Word& own_word(std::uint64_t index) const;
  [[nodiscard]] const Word& word_of(int rank, const RingKey& key) const;
  [[nodiscard]] std::int64_t read(const RemoteGet& get, const RingKey& key, std::int64_t bytes) const;

  RingOptions options_;
  std::shared_ptr<shm::LocalPeers> local_peers_;
  std::vector<Word*> word_pages_;
  std::vector<std::uint64_t> free_words_;
  std::uint64_t last_key_ = 0;
};

}  // namespace tutti::link
