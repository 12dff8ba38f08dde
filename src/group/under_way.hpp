// under_way.hpp: the calls of a group that have not ended: collectives in the order of their numbers, messages in no order.
// SPDX-License-Identifier: Apache-2.0
//
// A hundred thousand of them may be under way, so no function here walks through more of them than its caller asks for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "group/operation.hpp"

namespace tutti {

/// Collectives. One that has ended stays until all before it have; so the first is the oldest that has not. Places are counted from
/// the first call that was ever added, and stay what they are while calls come and go.
class CallQueue {
 public:
  [[nodiscard]] bool empty() const { return first_ == end_; }
  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(end_ - first_); }
  [[nodiscard]] std::uint64_t first() const { return first_; }
  [[nodiscard]] std::uint64_t end() const { return end_; }
  [[nodiscard]] const std::shared_ptr<Operation>& at(std::uint64_t place) const { return buffer_[index_of(place)]; }
  [[nodiscard]] const std::shared_ptr<Operation>& oldest() const { return at(first_); }
  /// Its number is higher than all others'.
  void add(std::shared_ptr<Operation> operation);
  /// The one of that number, if it has not ended.
  [[nodiscard]] Operation* find(std::uint64_t sequence) const;
  /// Lets go of those that have ended and have none before them.
  void drop_ended();

 private:
  [[nodiscard]] std::size_t index_of(std::uint64_t place) const { return place & (buffer_.size() - 1); }
  void grow();

  std::vector<std::shared_ptr<Operation>> buffer_{
      8};  // a power of two; kept, so that a repeated call allocates nothing
  std::uint64_t first_ = 0, end_ = 0;
};

/// Messages. Those whose transfers are over are listed apart, so that nobody has to look for them.
class MessageSet {
 public:
  [[nodiscard]] bool empty() const { return all_.empty(); }
  [[nodiscard]] const std::vector<std::shared_ptr<Operation>>& all() const { return all_; }
  void add(std::shared_ptr<Operation> operation);
  /// Of one that is not in here: nothing happens.
  void remove(const Operation& operation);
  /// Its transfer is over.
  void note_news(Operation& operation);
  /// Of those with news the first that got it, which has none any more; null: there is none. It stays a member.
  [[nodiscard]] Operation* take_news();

 private:
  [[nodiscard]] bool holds(const Operation& operation) const;

  std::vector<std::shared_ptr<Operation>> all_;  // each knows its place
  std::vector<Operation*> news_;                 // likewise; null: taken out
  std::size_t next_news_ = 0;
};

}  // namespace tutti
