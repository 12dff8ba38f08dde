// line_writer.hpp: asynchronous lines on stderr.
// SPDX-License-Identifier: Apache-2.0
//
// A write to stderr blocks for as long as its reader does not read: a stopped terminal, a full pipe. The logging thread
// may hold a rank's lock, and the rank would block with it. So lines are queued and a separate thread writes them; that
// thread may block forever without harm.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>

namespace tutti {

class LineWriter {
 public:
  explicit LineWriter(int descriptor) : descriptor_(descriptor) {}
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  /// Takes a whole line, newline included, which is written in one piece. Never blocks. Lines that do not fit are
  /// counted, and the count is written in their place.
  void write(std::string_view line);
  /// Waits until everything was written, but no longer than this; returns whether it was.
  bool flush(std::chrono::milliseconds limit);

  /// The writer for stderr. Flushes for a short time when the process ends; a forked child gets one of its own.
  static LineWriter& of_stderr();

 private:
  void serve();
  [[nodiscard]] bool start_thread();
  void note_dropped();

  static constexpr std::size_t lines_max = 1000;

  const int descriptor_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> lines_;  // the first stays until it was written
  std::size_t dropped_ = 0;        // lines, since the last that was queued
  bool has_thread_ = false;
};

}  // namespace tutti
