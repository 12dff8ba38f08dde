// printer.cpp: a queue of batches and the thread that writes them.
// SPDX-License-Identifier: Apache-2.0
#include "launch/printer.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "base/made_fd.hpp"
#include "base/start_thread.hpp"

namespace tutti::launch {
namespace {

constexpr std::size_t batch_bytes = std::size_t{256} << 10;
constexpr std::size_t waiting_bytes_max = std::size_t{2} << 20;
constexpr std::size_t spare_max = 8;

}  // namespace

Printer::Printer(int output, int error)
    : descriptors_{output, error},
      progress_(made(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "an eventfd")),
      thread_(start_thread("that prints", [this] { run(); })) {}

Printer::~Printer() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  work_.notify_one();
  thread_.join();
}

std::string& Printer::text(Stream stream) {
  if (filling_.stream != stream) {
    flush();
    filling_.stream = stream;
  }
  return filling_.text;
}

void Printer::flush_if_large() {
  if (filling_.text.size() >= batch_bytes) flush();
}

void Printer::flush() {
  if (filling_.text.empty()) return;
  const Stream stream = filling_.stream;
  {
    const std::lock_guard lock(mutex_);
    waiting_bytes_ += filling_.text.size();
    waiting_.push_back(std::move(filling_));
    filling_ = {.stream = stream};
    if (!spare_.empty()) {
      filling_.text = std::move(spare_.back());
      spare_.pop_back();
    }
  }
  work_.notify_one();
}

bool Printer::has_room() const {
  const std::lock_guard lock(mutex_);
  return waiting_bytes_ < waiting_bytes_max;
}

bool Printer::is_idle() const {
  const std::lock_guard lock(mutex_);
  return waiting_.empty() && filling_.text.empty();
}

int Printer::failure(Stream stream) const {
  const std::lock_guard lock(mutex_);
  return failures_[static_cast<std::size_t>(stream)];
}

void Printer::acknowledge() const {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t bytes = read(progress_.get(), &count, sizeof(count));
}

void Printer::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [this] { return is_stopping_ || !waiting_.empty(); });
    if (is_stopping_) return;
    const Batch& batch = waiting_.front();  // stays where it is: only this thread takes from the front
    lock.unlock();
    write_all(batch);
    lock.lock();
    waiting_bytes_ -= batch.text.size();
    std::string text = std::move(waiting_.front().text);
    waiting_.pop_front();
    text.clear();
    if (spare_.size() < spare_max) spare_.push_back(std::move(text));
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t bytes = write(progress_.get(), &one, sizeof(one));
  }
}

void Printer::write_all(const Batch& batch) {
  const auto index = static_cast<std::size_t>(batch.stream);
  std::string_view rest = batch.text;
  while (!rest.empty() && failure(batch.stream) == 0) {
    const ssize_t bytes = write(descriptors_[index], rest.data(), rest.size());
    if (bytes >= 0) {
      rest.remove_prefix(static_cast<std::size_t>(bytes));
    } else if (errno == EAGAIN) {  // somebody we share the descriptor with made it non-blocking
      pollfd writable{.fd = descriptors_[index], .events = POLLOUT, .revents = 0};
      poll(&writable, 1, 1000);
    } else if (errno != EINTR) {
      const std::lock_guard lock(mutex_);
      failures_[index] = errno;
    }
  }
}

}  // namespace tutti::launch
