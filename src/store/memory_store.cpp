// memory_store.cpp: a table under a lock.
// SPDX-License-Identifier: Apache-2.0
#include "store/memory_store.hpp"

#include <condition_variable>
#include <mutex>

#include "store/limits.hpp"
#include "store/table.hpp"

namespace tutti {

namespace {

using namespace store;

class MemoryStore final : public Store {
 public:
  void set(std::string_view key, std::string_view value, TimePoint) override {
    check_key(key);
    check_value(key, value);
    auto shared = std::make_shared<const std::string>(value);
    const std::lock_guard lock(mutex_);
    table_.set(key, std::move(shared));
    changed_.notify_all();
  }

  std::string get(std::string_view key, TimePoint deadline) override { return *await(key, "get", deadline); }
  void wait(std::string_view key, TimePoint deadline) override { (void)await(key, "wait", deadline); }

  std::optional<std::string> try_get(std::string_view key, TimePoint) override {
    check_key(key);
    const std::lock_guard lock(mutex_);
    const Value value = table_.find(key);
    return value ? std::optional(*value) : std::nullopt;
  }

  std::int64_t add(std::string_view key, std::int64_t amount, TimePoint) override {
    check_key(key);
    const std::lock_guard lock(mutex_);
    const std::int64_t sum = table_.add(key, amount);
    changed_.notify_all();
    return sum;
  }

  std::string compare_set(std::string_view key, std::optional<std::string_view> expected, std::string_view desired,
                          TimePoint) override {
    check_key(key);
    check_value(key, desired);
    const std::lock_guard lock(mutex_);
    const auto [value, changed] = table_.compare_set(key, expected, desired);
    if (changed) changed_.notify_all();
    return value ? *value : std::string();
  }

  bool remove(std::string_view key, TimePoint) override {
    check_key(key);
    const std::lock_guard lock(mutex_);
    return table_.remove(key);
  }

 private:
  Value await(std::string_view key, std::string_view call, TimePoint deadline) {
    check_key(key);
    std::unique_lock lock(mutex_);
    Value value;
    const auto there = [&] { return (value = table_.find(key)) != nullptr; };
    if (!changed_.wait_until(lock, deadline, there)) throw_timeout("the store in memory", call, key, "nobody set it");
    return value;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  Table table_;
};

}  // namespace

std::shared_ptr<Store> memory_store() { return std::make_shared<MemoryStore>(); }

}  // namespace tutti
