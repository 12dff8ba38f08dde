// logging.cpp: the library's log lines for Python's logging.
// SPDX-License-Identifier: Apache-2.0
//
// A line is logged on whatever thread has something to say, perhaps under a lock, where no Python code may run. So it only goes into a
// queue, which a thread of Python's reads (tutti/_log.py).
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <tutti/error.hpp>

#include "base/environment.hpp"
#include "base/log.hpp"
#include "bindings/bind.hpp"
#include "bindings/gil.hpp"

namespace tutti::python {
namespace {

class LogLines {
 public:
  explicit LogLines(const std::string& level) {
    Log::redirect(Log::level_from(Environment{{"TUTTI_LOG", level}}),
                  [queue = queue_](std::string_view line) { queue->push(std::string(line)); });
  }
  LogLines(const LogLines&) = delete;
  LogLines& operator=(const LogLines&) = delete;
  ~LogLines() { close(); }

  std::optional<std::string> pop(double seconds) {
    const WithoutGil release;
    return queue_->pop(std::chrono::duration<double>(seconds));
  }
  /// Later lines go to stderr again; a pop() that waits returns.
  void close() {
    Log::redirect(Log::Level::warn, {});
    queue_->push("");
  }

 private:
  class Queue {
   public:
    void push(std::string line) {
      const std::lock_guard guard(mutex_);
      if (lines_.size() == lines_max) lines_.pop_front();  // without a reader the newest lines are kept
      lines_.push_back(std::move(line));
      changed_.notify_one();
    }

    std::optional<std::string> pop(std::chrono::duration<double> limit) {
      std::unique_lock guard(mutex_);
      if (!changed_.wait_for(guard, limit, [&] { return !lines_.empty(); })) return std::nullopt;
      std::string line = std::move(lines_.front());
      lines_.pop_front();
      return line;
    }

   private:
    static constexpr std::size_t lines_max = 10000;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::string> lines_;
  };

  std::shared_ptr<Queue> queue_ = std::make_shared<Queue>();  // a thread may log while the Python object goes away
};

}  // namespace

void bind_logging(nb::module_& m) {
  nb::class_<LogLines>(m, "LogLines", "Takes the library's log lines, while it lives, from stderr.")
      .def(nb::init<const std::string&>(), nb::arg("level"))
      .def("pop", &LogLines::pop, nb::arg("seconds"),
           "The next line; None if there is none for that long, an empty one after close().")
      .def("close", &LogLines::close);
}

}  // namespace tutti::python
