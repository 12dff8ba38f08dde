// recorder.hpp: the flight recorder: a rank writes down each of its calls, in memory that outlives it.
// SPDX-License-Identifier: Apache-2.0
//
// Always on, so it may cost nothing to speak of: one cache line per call, one reading of the processor's clock at its start, and one at its
// end if the call had to wait. It fails in silence: a rank without memory for records runs without them being seen by others.
//
// Thread rule: begin(), end() and the groups are used under the rank's lock; everything else by any thread.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include <tutti/clock.hpp>

#include "base/unique_fd.hpp"
#include "record/answers.hpp"
#include "record/layout.hpp"
#include "record/step_trace.hpp"
#include "record/ticks.hpp"

namespace tutti::record {

struct RankFacts {
  int rank = 0, size = 1, node = 0;
  std::string job{}, host{};
};

class Recorder {
 public:
  /// For traces the end of every call is timed, also of those that are over at once, and their steps are written down.
  enum class Detail : bool { usual, traced };
  /// Takes the file over; without one, or where it cannot be mapped, the records are this process's own.
  Recorder(UniqueFd file, const RankFacts& facts, Detail detail);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  [[nodiscard]] const Fixed& fixed() const { return *fixed_; }
  [[nodiscard]] const std::byte* memory() const { return reinterpret_cast<const std::byte*>(fixed_); }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  /// Null: steps are not written down.
  [[nodiscard]] StepTrace* steps() { return steps_ ? &*steps_ : nullptr; }
  /// The descriptor by which others read the records; -1: they cannot.
  [[nodiscard]] int file() const { return file_.get(); }

  /// A place for the group's counters; what does not fit shares the last one.
  std::uint16_t add_group(std::uint64_t id, int rank, int size, std::string_view members);
  void remove_group(std::uint16_t place);
  /// The place of a way in which calls are carried out, "ring over tcp".
  std::uint16_t name(std::string_view text);
  /// The place of a line of the program. 0: there is no room for more.
  std::uint32_t site(std::string_view text);

  /// Notes that a call begins; the result names it to those below.
  std::uint64_t begin(const CallShape& shape, std::uint64_t sequence, std::uint32_t site) {
    const std::uint64_t number = ++written_;
    Entry& entry = ring_[number & mask_];
    entry.number.store(0, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_release);
    entry.started.store(ticks(), std::memory_order_relaxed);
    entry.sequence.store(sequence, std::memory_order_relaxed);
    entry.shape = shape;
    entry.site.store(site, std::memory_order_relaxed);
    entry.state.store(static_cast<std::uint32_t>(State::under_way), std::memory_order_relaxed);
    entry.number.store(number, std::memory_order_release);
    fixed_->written.store(number, std::memory_order_relaxed);
    Counters& counters = counters_of(shape);
    add(counters.calls, 1);
    add(counters.bytes, shape.bytes);
    __builtin_prefetch(&ring_[(number + 1) & mask_], 1);
    return number;
  }
  /// It was over before anyone had to wait.
  void end_at_once(std::uint64_t number) {
    Entry& entry = ring_[number & mask_];
    if (steps_) [[unlikely]]
      entry.ended.store(ticks(), std::memory_order_relaxed);
    entry.state.store(static_cast<std::uint32_t>(State::at_once), std::memory_order_release);
  }
  /// It was over after a thread had waited in it since its start.
  void end_waited(std::uint64_t number, const CallShape& shape) {
    const std::uint64_t took = end_timed(number, shape, State::ended);
    add(counters_of(shape).polled, took);
  }
  /// A thread has waited in it since its start, with the lock, and goes on waiting without it.
  void note_polled(std::uint64_t number, const CallShape& shape) {
    add(counters_of(shape).polled, ticks() - ring_[number & mask_].started.load(std::memory_order_relaxed));
  }
  /// It is over, well or not. Some other call may have its entry by now.
  void end(std::uint64_t number, std::uint64_t started, const CallShape& shape, State how);
  /// When the call of that number began; 0: it is long ago.
  [[nodiscard]] std::uint64_t started_at(std::uint64_t number) const;
  void note_site(std::uint64_t number, std::uint32_t site);
  /// The way in which a call is carried out, where it was not known when the call began.
  void note_way(std::uint64_t number, std::uint16_t how);
  /// The other end of a message that was received from anyone.
  void note_peer(std::uint64_t number, int peer);
  /// Without the lock.
  void note_waited(const CallShape& shape, std::uint64_t ticks_waited) {
    counters_of(shape).waited.fetch_add(ticks_waited, std::memory_order_relaxed);
  }

  /// What the call of that number waits for; 0: no call waits for long.
  void note_stall(std::uint64_t number, std::string_view what, int step, int step_count);
  void note_error(std::string_view text);
  void note_life(Life life);
  /// Sets the clocks against each other anew; cheap, and of use about once a second.
  void note_time();

  /// To tools that ask where the program is.
  [[nodiscard]] Answers& answers() { return *answers_; }

  /// In a forked child: whatever is written from now on stays there.
  void abandon();

 private:
  [[nodiscard]] Counters& counters_of(const CallShape& shape) const {
    return fixed_->counters[shape.group][shape.verb];
  }
  static void add(Word& word, std::uint64_t more) {
    word.store(word.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
  }
  std::uint64_t end_timed(std::uint64_t number, const CallShape& shape, State how);

  Fixed* fixed_ = nullptr;
  Entry* ring_ = nullptr;
  std::uint64_t mask_ = 0, written_ = 0;
  std::optional<StepTrace> steps_;
  std::size_t bytes_ = 0;
  UniqueFd file_;
  std::mutex texts_;
  std::unordered_map<std::string, std::uint32_t> sites_, names_;
  std::optional<Answers> answers_;
};

/// For a thread of the program that waits: how long it did.
class Waiting {
 public:
  Waiting(Recorder* recorder, const CallShape& shape)
      : recorder_(recorder), shape_(shape), since_(recorder == nullptr ? 0 : ticks()) {}
  ~Waiting() {
    if (recorder_ != nullptr) recorder_->note_waited(shape_, ticks() - since_);
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  Recorder* recorder_;
  CallShape shape_;
  std::uint64_t since_;
};

}  // namespace tutti::record
