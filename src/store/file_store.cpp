// file_store.cpp: the calls of a store over a file log; waiting is asking again, ever more slowly.
// SPDX-License-Identifier: Apache-2.0
#include "store/file_store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <thread>

#include "store/file_log.hpp"
#include "store/limits.hpp"

namespace tutti {

namespace {

using namespace store;
using Access = FileLog::Access;

// Pauses that grow from `first` to `most`.
class Backoff {
 public:
  Backoff(Duration first, Duration most) : pause_(first), most_(most) {}
  // False if the deadline has passed.
  bool pause(TimePoint deadline) {
    const TimePoint now = std::chrono::steady_clock::now();
    if (now >= deadline) return false;
    std::this_thread::sleep_until(std::min(deadline, deadline_after(now, pause_)));
    pause_ = std::min(pause_ * 3 / 2, most_);
    return true;
  }

 private:
  Duration pause_, most_;
};

class FileStore final : public Store {
 public:
  explicit FileStore(const std::filesystem::path& path)
      : log_(path), name_(fmt::format("the store in {}", log_.path().string())) {}

  void set(std::string_view key, std::string_view value, TimePoint deadline) override {
    check_value(key, value);
    use({Access::append, "set", key, deadline}, [&](Table& table) { put(table, key, std::string(value)); });
  }

  std::string get(std::string_view key, TimePoint deadline) override { return *await(key, "get", deadline); }
  void wait(std::string_view key, TimePoint deadline) override { (void)await(key, "wait", deadline); }

  std::optional<std::string> try_get(std::string_view key, TimePoint deadline) override {
    const Value value = find({Access::read, "try_get", key, deadline});
    return value ? std::optional(*value) : std::nullopt;
  }

  std::int64_t add(std::string_view key, std::int64_t amount, TimePoint deadline) override {
    std::int64_t sum = 0;
    use({Access::append, "add", key, deadline}, [&](Table& table) {
      Table trial;
      if (const Value before = table.find(key)) trial.set(key, before);
      sum = trial.add(key, amount);
      put(table, key, std::to_string(sum));
    });
    return sum;
  }

  std::string compare_set(std::string_view key, std::optional<std::string_view> expected, std::string_view desired,
                          TimePoint deadline) override {
    check_value(key, desired);
    Value after;
    use({Access::append, "compare_set", key, deadline}, [&](Table& table) {
      Table trial;
      if (const Value before = table.find(key)) trial.set(key, before);
      const auto [value, changed] = trial.compare_set(key, expected, desired);
      if (changed) put(table, key, *value);
      after = value;
    });
    return after ? *after : std::string();
  }

  bool remove(std::string_view key, TimePoint deadline) override {
    bool removed = false;
    use({Access::append, "remove", key, deadline}, [&](Table& table) {
      if (!table.find(key)) return;
      log_.append({.kind = Request::Kind::remove, .key = std::string(key)});
      removed = table.remove(key);
    });
    return removed;
  }

 private:
  struct StoreCall {
    Access access;
    std::string_view name;
    std::string_view key;
    TimePoint deadline;
  };

  // To the file first: if that fails, nothing has changed.
  void put(Table& table, std::string_view key, std::string value) {
    Request change{.kind = Request::Kind::set, .key = std::string(key), .value = std::move(value)};
    log_.append(change);
    table.set(key, std::make_shared<const std::string>(std::move(change.value)));
  }

  void use(const StoreCall& call, const std::function<void(Table&)>& action) {
    check_key(call.key);
    Backoff backoff(std::chrono::microseconds(50), std::chrono::milliseconds(10));
    while (true) {
      {
        const std::lock_guard lock(mutex_);
        if (log_.try_use(call.access, action)) return;
      }
      if (!backoff.pause(call.deadline)) throw_timeout(name_, call.name, call.key, "others keep the file locked");
    }
  }

  Value find(const StoreCall& call) {
    Value value;
    use(call, [&](Table& table) { value = table.find(call.key); });
    return value;
  }

  Value await(std::string_view key, std::string_view call, TimePoint deadline) {
    Backoff backoff(std::chrono::microseconds(200), std::chrono::milliseconds(50));
    while (true) {
      if (Value value = find({Access::read, call, key, deadline})) return value;
      if (!backoff.pause(deadline)) throw_timeout(name_, call, key, "nobody set it");
    }
  }

  std::mutex mutex_;  // held for one attempt, never while waiting
  FileLog log_;
  std::string name_;
};

}  // namespace

std::shared_ptr<Store> file_store(const std::filesystem::path& path) { return std::make_shared<FileStore>(path); }

}  // namespace tutti
