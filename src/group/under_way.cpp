// under_way.cpp: the calls of a group that have not ended.
// SPDX-License-Identifier: Apache-2.0
#include "group/under_way.hpp"

#include <utility>

namespace tutti {

void CallQueue::add(std::shared_ptr<Operation> operation) {
  if (size() == buffer_.size()) grow();
  buffer_[index_of(end_)] = std::move(operation);
  ++end_;
}

void CallQueue::grow() {
  std::vector<std::shared_ptr<Operation>> larger(buffer_.size() * 2);
  for (std::uint64_t place = first_; place < end_; ++place)
    larger[place & (larger.size() - 1)] = std::move(buffer_[index_of(place)]);
  buffer_.swap(larger);
}

Operation* CallQueue::find(std::uint64_t sequence) const {
  std::uint64_t low = first_, high = end_;
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (at(middle)->request.signature.sequence < sequence) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == end_) return nullptr;
  Operation* const found = at(low).get();
  return found->request.signature.sequence == sequence && !found->ended() ? found : nullptr;
}

void CallQueue::drop_ended() {
  while (!empty() && oldest()->ended()) buffer_[index_of(first_++)].reset();
}

bool MessageSet::holds(const Operation& operation) const {
  return operation.place < all_.size() && all_[operation.place].get() == &operation;
}

void MessageSet::exchange(std::size_t a, std::size_t b) {
  std::swap(all_[a], all_[b]);
  all_[a]->place = a;
  all_[b]->place = b;
}

void MessageSet::add(std::shared_ptr<Operation> operation) {
  operation->place = all_.size();
  all_.push_back(std::move(operation));
}

void MessageSet::remove(const Operation& operation) {
  if (!holds(operation)) return;
  std::size_t place = operation.place;
  if (place < news_) {
    exchange(place, --news_);
    place = news_;
  }
  exchange(place, all_.size() - 1);
  all_.pop_back();
}

void MessageSet::note_news(const Operation& operation) {
  if (holds(operation) && operation.place >= news_) exchange(operation.place, news_++);
}

void MessageSet::take_news(std::vector<std::shared_ptr<Operation>>& to) {
  to.assign(all_.begin(), all_.begin() + static_cast<std::ptrdiff_t>(news_));
  news_ = 0;
}

}  // namespace tutti
