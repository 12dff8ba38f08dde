// queue_link.hpp: a link in a few lines: frames in queues between ranks that are threads of one process.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <tutti/error.hpp>
#include <tutti/link.hpp>

namespace extending {

// What all links of the process share: a queue for each (sender, receiver).
class Queues {
 public:
  struct Item {
    std::uint8_t type = 0;
    std::vector<std::byte> head{}, payload{};
  };
  static constexpr std::size_t room = 16;

  bool push(int from, int to, Item item) {
    const std::lock_guard guard(mutex_);
    std::deque<Item>& queue = queues_[{from, to}];
    if (queue.size() == room) return false;
    queue.push_back(std::move(item));
    return true;
  }
  bool pop(int from, int to, Item& item) {
    const std::lock_guard guard(mutex_);
    std::deque<Item>& queue = queues_[{from, to}];
    if (queue.empty()) return false;
    item = std::move(queue.front());
    queue.pop_front();
    return true;
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<int, int>, std::deque<Item>> queues_;
};

// A link for all ranks but this one. It copies every frame, so that no memory of a sender is in use when send() returns: then
// withdraw() has nothing to do. It cannot read a peer's memory: large messages come in fragments.
class QueueLink final : public tutti::Link {
 public:
  QueueLink(int rank, std::shared_ptr<Queues> queues, int size = 2)
      : rank_(rank), size_(size), queues_(std::move(queues)), gone_(static_cast<std::size_t>(size)) {}

  [[nodiscard]] std::string_view name() const override { return "queues"; }
  [[nodiscard]] Limits limits() const override {
    return {.eager_bytes_max = 4 << 10, .credit_bytes = 64 << 10, .fragment_bytes_max = 32 << 10};
  }
  void listen(tutti::LinkListener* listener) override { listener_ = listener; }

  // One queue keeps the order of all frames, which is more than is asked for.
  Taken send(int peer, tutti::FrameOrder, const tutti::Frame& frame, void*) override {
    const bool taken = queues_->push(rank_, peer,
                                     {.type = frame.type,
                                      .head = {frame.head.begin(), frame.head.end()},
                                      .payload = {frame.payload.begin(), frame.payload.end()}});
    return taken ? Taken::copied : Taken::no_room;
  }

  bool poll() override {
    bool moved = false;
    for (int peer = 0; peer < size_; ++peer) moved |= peer != rank_ && read(peer);
    return moved;
  }
  void drain(int peer) override { read(peer); }
  void disconnect(int peer) override { gone_[static_cast<std::size_t>(peer)] = true; }
  void abandon() override {}

 private:
  // Bounded, so that no peer starves the others. Only the protocol knows what a frame may say: its Error means that the peer is lost.
  bool read(int peer) {
    Queues::Item item;
    for (std::size_t count = 0; count < Queues::room; ++count) {
      if (gone_[static_cast<std::size_t>(peer)] || !queues_->pop(peer, rank_, item)) return count > 0;
      try {
        listener_->frame(peer, {.type = item.type, .head = item.head, .payload = item.payload});
      } catch (const tutti::Error& error) {
        disconnect(peer);
        listener_->lost(peer, error.what());
      }
    }
    return true;
  }

  int rank_, size_;
  std::shared_ptr<Queues> queues_;
  std::vector<bool> gone_;
  tutti::LinkListener* listener_ = nullptr;
};

}  // namespace extending
