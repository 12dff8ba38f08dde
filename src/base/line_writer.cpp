// line_writer.cpp: asynchronous lines on stderr.
// SPDX-License-Identifier: Apache-2.0
#include "base/line_writer.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <system_error>
#include <thread>

namespace tutti {
namespace {

constexpr std::chrono::milliseconds flush_limit{500};  // at the end of the process: stderr may be blocked

// Never destroyed: its thread may be in the middle of a write when the process ends.
std::atomic<LineWriter*> stderr_writer{nullptr};

void flush_stderr() {
  if (LineWriter* const writer = stderr_writer.load(std::memory_order_acquire)) writer->flush(flush_limit);
}

// The child of a fork has the queue but not the thread, and a lock that may be held forever. The parent writes what is
// queued.
void forget_in_child() { stderr_writer.store(nullptr, std::memory_order_release); }

}  // namespace

LineWriter& LineWriter::of_stderr() {
  static const bool prepared = [] {
    std::atexit(flush_stderr);
    pthread_atfork(nullptr, nullptr, forget_in_child);
    return true;
  }();
  static_cast<void>(prepared);
  LineWriter* writer = stderr_writer.load(std::memory_order_acquire);
  if (writer == nullptr) {
    auto* const made = new LineWriter(STDERR_FILENO);
    if (stderr_writer.compare_exchange_strong(writer, made, std::memory_order_acq_rel)) {
      writer = made;
    } else {
      delete made;  // another thread was faster, and `writer` is its
    }
  }
  return *writer;
}

void LineWriter::write(std::string_view line) {
  const std::lock_guard guard(mutex_);
  if (!has_thread_) has_thread_ = start_thread();
  if (!has_thread_ || lines_.size() >= lines_max) {
    ++dropped_;
    return;
  }
  if (dropped_ > 0) note_dropped();
  lines_.emplace_back(line);
  changed_.notify_all();
}

void LineWriter::note_dropped() {
  lines_.push_back(fmt::format("tutti warn: {} lines were left out here: stderr was not read\n", dropped_));
  dropped_ = 0;
}

// Signals are the program's: none is delivered to this thread.
bool LineWriter::start_thread() {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool started = true;
  try {
    std::thread([this] { serve(); }).detach();
  } catch (const std::system_error&) {  // no more threads: a line that is lost is no reason to fail
    started = false;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

void LineWriter::serve() {
  std::unique_lock guard(mutex_);
  while (true) {
    changed_.wait(guard, [this] { return !lines_.empty(); });
    const std::string line = lines_.front();
    guard.unlock();
    // One call, so that lines stay whole. If the log cannot be written, the rest is lost; that is no reason to fail.
    [[maybe_unused]] const ssize_t written = ::write(descriptor_, line.data(), line.size());
    guard.lock();
    lines_.pop_front();
    if (lines_.empty() && dropped_ > 0) note_dropped();
    changed_.notify_all();
  }
}

bool LineWriter::flush(std::chrono::milliseconds limit) {
  std::unique_lock guard(mutex_);
  return changed_.wait_for(guard, limit, [this] { return lines_.empty(); });
}

}  // namespace tutti
