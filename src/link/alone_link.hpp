// alone_link.hpp: the network of a world of one: there is nobody to send to, and a wait ends by wake() or time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include <tutti/link.hpp>

namespace tutti::link {

class AloneLink final : public Network {
 public:
  explicit AloneLink(const Clock& clock) : clock_(clock) {}

  [[nodiscard]] std::string_view name() const override { return "memory"; }
  // Of messages to oneself.
  [[nodiscard]] Limits limits() const override { return {.eager_bytes_max = 64 << 10, .credit_bytes = 2 << 20}; }
  void listen(LinkListener*) override {}
  Taken send(int, FrameOrder, const Frame&, void*) override { return Taken::copied; }
  bool poll() override { return false; }
  void abandon() override {}
  void post(int, std::span<const std::byte>) override {}
  void attach(int) override {}
  bool heard_from(int) override { return false; }
  bool wait(TimePoint until, Transport::Events) override {
    std::unique_lock guard(mutex_);
    woken_.wait_until(guard, std::min(until, clock_.now() + std::chrono::milliseconds(20)));
    return true;
  }
  void wake() override { woken_.notify_all(); }
  void close(TimePoint) override {}

 private:
  const Clock& clock_;
  std::mutex mutex_;
  std::condition_variable woken_;
};

}  // namespace tutti::link
