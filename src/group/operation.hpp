// operation.hpp: one call on a group, from the door to its end.
// SPDX-License-Identifier: Apache-2.0
//
// Thread rule: everything but the constructor and ended() happens under the runtime's lock. `done_` is also read without it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <tutti/backend.hpp>
#include <tutti/messages.hpp>
#include <tutti/transport.hpp>

#include "base/log.hpp"
#include "engine/aligned_buffer.hpp"
#include "group/prepared_calls.hpp"
#include "record/layout.hpp"

namespace tutti {

class GroupCore;

class Operation final : public std::enable_shared_from_this<Operation>, private TransferWatcher, private TransferRoom {
 public:
  Operation() = default;
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  [[nodiscard]] bool ended() const { return ended_.load(std::memory_order_acquire); }
  [[nodiscard]] bool is_message() const { return tutti::is_message(request.verb); }
  /// Throws what went wrong, if anything did.
  void rethrow() const;
  /// Gives up whatever is under way; the caller's memory is not touched afterwards.
  void release_resources();
  /// `error` may be null.
  void end(std::exception_ptr error);
  /// Keeps a function for run_callbacks(). False: it has ended, and its error() is known.
  using Callback = std::function<void(std::exception_ptr)>;
  [[nodiscard]] bool then(Callback callback);
  [[nodiscard]] bool has_callbacks() const { return !callbacks_.empty(); }
  /// Without the lock, once it has ended; it stays so until this returns. What a function throws goes to the log.
  void run_callbacks(const Log& log);
  /// Whether all functions that it was given have returned.
  [[nodiscard]] bool is_called_back() const { return called_back_.load(std::memory_order_acquire); }
  [[nodiscard]] const std::exception_ptr& error() const { return error_; }
  /// Makes a pooled operation new again.
  void reset();
  /// A message that was handed to the transport and is not over: its group hears when it is.
  void watch_transfer() { transfer.watcher = this; }
  /// Memory for a receive that learns its size comes from the request's `allocate`.
  [[nodiscard]] TransferRoom& room() { return *this; }
  /// Of a message that has come.
  [[nodiscard]] Received received() const {
    return {.source = peer, .tag = transfer.envelope.tag, .count = transfer.envelope.signature.count};
  }

  std::shared_ptr<GroupCore>
      group;  // let go of by the thread that waits for the operation, so that no other one destroys it
  Request request;
  TimePoint started_at{};
  Duration timeout{};
  std::shared_ptr<CachedCall> shape;   // collectives
  std::unique_ptr<PreparedCall> call;  // collectives, once they run
  Transport* transport = nullptr;      // messages
  Transfer transfer;
  int peer = -1;             // messages: rank in the group, any_source until it is known
  bool from_anyone = false;  // messages: a receive that names no peer
  bool takes_any = false;    // messages: a receive or probe of an array that is not known before
  bool is_exact = false;     // messages: a receive that must be filled
  std::uint8_t number = 0;   // messages of the library's own: which one has to come; 0: any
  bool is_packed = false;    // messages: the array is strided; a receive finds it in `request.output`
  std::size_t place = 0;     // messages: in the group's set
  static constexpr std::size_t no_news = ~std::size_t{0};
  std::size_t news_place = no_news;  // messages: in the set's list of those whose transfers are over
  bool waits_for_turn = false;       // an earlier operation works on overlapping memory, or too many are before it
  std::string failing;               // a transfer failed: why; the verdict of the control network is awaited
  std::vector<int> failing_peers;    // ranks in the world: the one it was with, or all that it may have been with
  std::uint64_t first_question = 0;  // that they were asked since it failed; 0: none yet
  bool does_not_fit = false;  // failing because of a message of another size than was expected; otherwise by a link

  // Stall watch: when the ranks it waits for were last asked about it.
  TimePoint probed_at{};
  std::size_t probe_count = 0;
  bool reported = false;  // that it takes long
  std::string site;       // where the program made the call, "train.py:41"; empty: not told
  // What was written down of it.
  std::uint64_t record = 0;          // the number of its record; 0: there is none
  std::uint64_t record_started = 0;  // in ticks
  record::CallShape recorded{};
  // Behind what every message uses.
  MessageShape lengths;  // messages: what the envelope has no room for
  AlignedBuffer packed;  // messages: elements of a strided array

 private:
  void is_over(Transfer& transfer) override;
  std::byte* room_for(Transfer& receive) override;

  std::atomic<bool> ended_{true};
  std::exception_ptr error_;
  std::vector<Callback> callbacks_;
  std::atomic<bool> called_back_{true};
};

/// A message that was over before it was under way: for a Work, and for those who describe it.
std::shared_ptr<Operation> ended_message(Verb verb, int peer, std::uint32_t tag, const Signature& signature = {});
/// Any send of that kind, where nobody asks what it was.
std::shared_ptr<Operation> ended_send();

}  // namespace tutti
