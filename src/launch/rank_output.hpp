// rank_output.hpp: the ranks' standard output and error: whole lines, prefixed, logged, the last ones remembered.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.hpp"
#include "launch/line_splitter.hpp"
#include "launch/printer.hpp"
#include "launch/tail.hpp"

namespace tutti::launch {

struct RankOutputOptions {
  int ranks = 1;
  int first_rank = 0;
  std::string log_folder = {};  // empty: no files
  bool is_shown = true;
  bool has_prefix = true;
  std::array<bool, 2> has_colour = {};  // per Stream
};

// A rank's line is shown when it is complete, in one piece, and after nothing but complete lines.
class RankOutput {
 public:
  // Makes the pipes and the log files. UsageError if the folder cannot be written to.
  RankOutput(const RankOutputOptions& options, Printer& printer);

  // What a rank writes to; close_writers() once they have it.
  [[nodiscard]] int writer(int rank, Stream stream) const { return at(rank, stream).writer.get(); }
  void close_writers();

  // Readable when there is something to pump.
  [[nodiscard]] int fd() const { return epoll_.get(); }
  // Reads once from every pipe that has something.
  void pump();
  [[nodiscard]] bool is_drained() const { return open_ == 0; }

  // "[3] text\n" for each of the last lines of a rank, as they are shown on `stream`.
  [[nodiscard]] std::string last_lines(int rank, Stream stream, std::size_t lines_max) const;
  // What went wrong with a log file; "" if nothing did.
  [[nodiscard]] const std::string& log_failure() const { return log_failure_; }

 private:
  struct Pipe {
    UniqueFd reader, writer;
    LineSplitter splitter;
    std::string prefix, continued_prefix;
  };
  struct Rank {
    std::array<Pipe, 2> pipes;
    UniqueFd log;
    Tail tail;
  };

  [[nodiscard]] const Pipe& at(int rank, Stream stream) const {
    return ranks_[static_cast<std::size_t>(rank)].pipes[static_cast<std::size_t>(stream)];
  }
  void open_pipes(std::size_t rank);
  void open_log(std::size_t rank);
  void open_log_folder();
  void read_pipe(std::size_t index);
  void take(std::size_t index, std::string_view text, LineSplitter::Piece piece);
  void show(const Pipe& pipe, Stream stream, std::string_view text, LineSplitter::Piece piece);
  void log(Rank& rank, std::string_view text);

  RankOutputOptions options_;
  Printer& printer_;
  UniqueFd epoll_;
  std::vector<Rank> ranks_;
  std::size_t open_ = 0;  // pipes
  std::string buffer_;
  UniqueFd log_folder_;
  std::string log_failure_;
};

}  // namespace tutti::launch
