// prefix_store.cpp: every call goes down with a longer key.
// SPDX-License-Identifier: Apache-2.0
#include "store/prefix_store.hpp"

#include <tutti/error.hpp>

namespace tutti {

namespace {

class PrefixStore final : public Store {
 public:
  PrefixStore(std::shared_ptr<Store> below, std::string prefix) : below_(std::move(below)), prefix_(std::move(prefix)) {
    prefix_ += '/';
  }

  void set(std::string_view key, std::string_view value, TimePoint deadline) override {
    below_->set(full(key), value, deadline);
  }
  std::string get(std::string_view key, TimePoint deadline) override { return below_->get(full(key), deadline); }
  void wait(std::string_view key, TimePoint deadline) override { below_->wait(full(key), deadline); }
  std::optional<std::string> try_get(std::string_view key, TimePoint deadline) override {
    return below_->try_get(full(key), deadline);
  }
  std::int64_t add(std::string_view key, std::int64_t amount, TimePoint deadline) override {
    return below_->add(full(key), amount, deadline);
  }
  std::string compare_set(std::string_view key, std::optional<std::string_view> expected, std::string_view desired,
                          TimePoint deadline) override {
    return below_->compare_set(full(key), expected, desired, deadline);
  }
  bool remove(std::string_view key, TimePoint deadline) override { return below_->remove(full(key), deadline); }

 private:
  [[nodiscard]] std::string full(std::string_view key) const { return prefix_ + std::string(key); }

  std::shared_ptr<Store> below_;
  std::string prefix_;
};

}  // namespace

std::shared_ptr<Store> prefix_store(std::shared_ptr<Store> below, std::string prefix) {
  if (!below) throw InvalidArgument("prefix_store needs a store to be a part of");
  return std::make_shared<PrefixStore>(std::move(below), std::move(prefix));
}

}  // namespace tutti
