// rank_pipes.hpp: the pipes that the ranks of this host write their standard output and error to.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.hpp"
#include "launch/printer.hpp"

namespace tutti::launch {

class RankPipes {
 public:
  // Ranks count from 0 on this host. Throws Error where descriptors run out.
  explicit RankPipes(int ranks);

  // What a rank writes to; close_writers() once they have it.
  [[nodiscard]] int writer(int rank, Stream stream) const { return at(rank, stream).writer.get(); }
  void close_writers();

  // Readable when there is something to pump.
  [[nodiscard]] int fd() const { return epoll_.get(); }
  // Told of every piece that was read; an empty one is the end of the stream.
  using Take = std::function<void(int rank, Stream stream, std::string_view bytes)>;
  // Reads once from every pipe that has something, at most `bytes_max` together.
  void pump(const Take& take, std::size_t bytes_max);
  [[nodiscard]] bool is_drained() const { return open_ == 0; }

 private:
  struct Pipe {
    UniqueFd reader, writer;
  };

  [[nodiscard]] const Pipe& at(int rank, Stream stream) const {
    return pipes_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(stream)];
  }
  void open_pipes(std::size_t rank);
  std::size_t read_pipe(std::size_t index, const Take& take, std::size_t bytes_max);

  UniqueFd epoll_;
  std::vector<std::array<Pipe, 2>> pipes_;
  std::size_t open_ = 0;
  std::string buffer_;
};

}  // namespace tutti::launch
