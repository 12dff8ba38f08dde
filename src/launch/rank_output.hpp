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
  std::vector<std::string> hosts = {};  // per rank, shown in its prefix; empty: one host, which is not shown
  std::string log_folder = {};          // empty: no files
  bool continues_logs = false;          // files that are there are kept
  bool is_shown = true;
  bool has_prefix = true;
  std::array<bool, 2> has_colour = {};  // per Stream
};

// A rank's line is shown when it is complete, in one piece, and after nothing but complete lines.
class RankOutput {
 public:
  // Makes the log files. UsageError if the folder cannot be written to.
  RankOutput(const RankOutputOptions& options, Printer& printer);

  // What a rank has written, and that it writes no more. Ranks are numbered as in the world.
  void add(int rank, Stream stream, std::string_view bytes);
  void finish(int rank, Stream stream);
  // Whether every rank has finished both streams.
  [[nodiscard]] bool is_drained() const { return open_ == 0; }

  // "[3] text\n" for each of the last lines of a rank, as they are shown on `stream`.
  [[nodiscard]] std::string last_lines(int rank, Stream stream, std::size_t lines_max) const;
  // What went wrong with a log file; "" if nothing did.
  [[nodiscard]] const std::string& log_failure() const { return log_failure_; }

 private:
  struct Lines {
    LineSplitter splitter;
    std::string prefix, continued_prefix;
    bool is_open = true;
  };
  struct Rank {
    std::array<Lines, 2> streams;
    UniqueFd log;
    Tail tail;
  };

  [[nodiscard]] std::size_t index_of(int rank) const { return static_cast<std::size_t>(rank - options_.first_rank); }
  void open_log(std::size_t rank);
  void open_log_folder();
  void take(std::size_t rank, Stream stream, std::string_view text, LineSplitter::Piece piece);
  void show(const Lines& lines, Stream stream, std::string_view text, LineSplitter::Piece piece);
  void log(Rank& rank, std::string_view text);

  RankOutputOptions options_;
  Printer& printer_;
  std::vector<Rank> ranks_;
  std::size_t open_ = 0;  // streams
  UniqueFd log_folder_;
  std::string log_failure_;
};

}  // namespace tutti::launch
