// board_backend.hpp: a small backend, by tutti/backend.hpp alone: ranks are threads of one process and meet at a board in memory.
// SPDX-License-Identifier: Apache-2.0
//
// It serves barrier, broadcast, all_gather along the first axis, and sums of a few dtypes; everything else goes to the backends
// behind it. docs/extending.md walks through it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include <tutti/backend.hpp>
#include <tutti/transport.hpp>

namespace tutti::contract {

/// What the ranks of one call have brought.
struct BoardCall {
  std::vector<std::vector<std::byte>> inputs;  // packed, by rank
  std::vector<Signature> signatures;           // of those that have posted
  std::vector<bool> posted;
  int posted_count = 0;
  int left_count = 0;  // ranks that are through with it
};

/// Shared by the backends of all ranks.
class Board {
 public:
  using Key = std::tuple<std::uint64_t, std::uint32_t, std::uint64_t>;  // group, epoch, number of the call

  void join(Transport& transport);
  void leave(Transport& transport);
  /// Puts a rank's input up, and wakes the others: they may sleep until a message comes.
  void post(const Key& key, const GroupFacts& facts, const Signature& signature, std::vector<std::byte> input);
  /// The call once every rank has posted; null before. It stays until every rank has left it.
  [[nodiscard]] const BoardCall* find(const Key& key);
  void leave(const Key& key, int size);

  std::atomic<int> served = 0;  // calls that went through the board, on all ranks

 private:
  std::mutex mutex_;
  std::vector<Transport*> transports_;
  std::map<Key, BoardCall> calls_;
};

/// A factory for InitOptions::backends. Each world of threads has a board of its own.
BackendFactory board_backend(std::shared_ptr<Board> board);

}  // namespace tutti::contract
