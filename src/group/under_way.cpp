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

void MessageSet::add(std::shared_ptr<Operation> operation) {
  operation->place = all_.size();
  operation->news_place = Operation::no_news;
  all_.push_back(std::move(operation));
}

void MessageSet::remove(const Operation& operation) {
  if (!holds(operation)) return;
  if (operation.news_place != Operation::no_news) news_[operation.news_place] = nullptr;
  const std::size_t place = operation.place;
  all_.back()->place = place;
  all_[place].swap(all_.back());
  all_.pop_back();
}

void MessageSet::note_news(Operation& operation) {
  if (!holds(operation) || operation.news_place != Operation::no_news) return;
  operation.news_place = news_.size();
  news_.push_back(&operation);
}

Operation* MessageSet::take_news() {
  while (next_news_ < news_.size()) {
    Operation* const operation = news_[next_news_++];
    if (operation == nullptr) continue;
    operation->news_place = Operation::no_news;
    return operation;
  }
  news_.clear();
  next_news_ = 0;
  return nullptr;
}

}  // namespace tutti
