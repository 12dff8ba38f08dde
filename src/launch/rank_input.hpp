// rank_input.hpp: what rank 0 reads, where tuttirun is on another host.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/unique_fd.hpp"

namespace tutti::launch {

// At most one piece is on its way: tuttirun sends the next one when write_some() has said that this one is written.
class RankInput {
 public:
  // The end that rank 0 reads from.
  UniqueFd open();
  void add(std::span<const std::byte> bytes);
  void close_when_written();
  // True once for every piece, when it is written; also when nobody reads any more.
  bool write_some();
  // To poll for room; -1 while there is nothing to write.
  [[nodiscard]] int fd() const { return unwritten_.empty() ? -1 : writer_.get(); }

 private:
  UniqueFd writer_;
  std::string unwritten_;
  bool is_ending_ = false;
};

}  // namespace tutti::launch
