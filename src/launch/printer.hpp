// printer.hpp: writes to tuttirun's standard output and error without ever making the supervisor wait.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "base/unique_fd.hpp"

namespace tutti::launch {

enum class Stream { output, error };

// A separate thread writes, and may block for as long as a pager does. The amount of queued text is bounded: while
// there is no room, the supervisor reads nothing, and the ranks' own writes block. Text of one stream stays in order,
// and so do the two streams with respect to each other.
//
// Thread rule: everything is called by one thread; the other is the printer's own.
class Printer {
 public:
  Printer(int output, int error);
  Printer(const Printer&) = delete;
  Printer& operator=(const Printer&) = delete;
  ~Printer();  // does not wait for what is not written yet

  // Where to append text; it is written some time after flush().
  std::string& text(Stream stream);
  void flush();
  // Flushes if enough has come together for one write.
  void flush_if_large();

  [[nodiscard]] bool has_room() const;
  [[nodiscard]] bool is_idle() const;
  // The errno of a write that failed, after which a stream is silent; 0.
  [[nodiscard]] int failure(Stream stream) const;
  // Becomes readable when something was written; acknowledge() makes it unreadable.
  [[nodiscard]] int fd() const { return progress_.get(); }
  void acknowledge() const;

 private:
  struct Batch {
    Stream stream = Stream::output;
    std::string text = {};
  };

  void run();
  void write_all(const Batch& batch);

  std::array<int, 2> descriptors_;
  UniqueFd progress_;
  Batch filling_;

  mutable std::mutex mutex_;
  std::condition_variable work_;
  std::deque<Batch> waiting_;  // the front one is being written
  std::deque<std::string> spare_;
  std::size_t waiting_bytes_ = 0;
  std::array<int, 2> failures_{};
  bool is_stopping_ = false;
  std::thread thread_;  // from the start: where it is refused, no rank runs yet
};

}  // namespace tutti::launch
