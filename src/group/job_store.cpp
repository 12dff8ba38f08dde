// job_store.cpp: the job's key-value store as programs see it.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <tutti/error.hpp>
#include <tutti/init.hpp>

#include "control/job_store.hpp"
#include "group/core.hpp"
#include "group/runtime.hpp"
#include "store/limits.hpp"

namespace tutti {
namespace {

using control::JobStore;
using Kind = store::Request::Kind;
using ReplyKind = store::Reply::Kind;

class StoreOfJob final : public Store {
 public:
  explicit StoreOfJob(std::shared_ptr<Runtime> runtime) : runtime_(std::move(runtime)) {}

  void set(std::string_view key, std::string_view value, TimePoint deadline) override {
    ask({.kind = Kind::set, .key = std::string(key), .value = std::string(value)}, deadline);
  }
  std::string get(std::string_view key, TimePoint deadline) override {
    return *ask({.kind = Kind::get, .key = std::string(key)}, deadline).value;
  }
  std::optional<std::string> try_get(std::string_view key, TimePoint deadline) override {
    const store::Reply reply = ask({.kind = Kind::try_get, .key = std::string(key)}, deadline);
    return reply.kind == ReplyKind::value ? std::optional(*reply.value) : std::nullopt;
  }
  std::int64_t add(std::string_view key, std::int64_t amount, TimePoint deadline) override {
    return ask({.kind = Kind::add, .key = std::string(key), .amount = amount}, deadline).number;
  }
  std::string compare_set(std::string_view key, std::optional<std::string_view> expected, std::string_view desired,
                          TimePoint deadline) override {
    store::Request request{.kind = Kind::compare_set, .key = std::string(key), .value = std::string(desired)};
    if (expected) request.expected = std::string(*expected);
    return *ask(std::move(request), deadline).value;
  }
  bool remove(std::string_view key, TimePoint deadline) override {
    return ask({.kind = Kind::remove, .key = std::string(key)}, deadline).number != 0;
  }
  void wait(std::string_view key, TimePoint deadline) override {
    ask({.kind = Kind::wait, .key = std::string(key)}, deadline);
  }

 private:
  store::Reply ask(store::Request request, TimePoint deadline) {
    check(request);
    runtime_->check_alive();
    std::shared_ptr<const JobStore::Asked> asked;
    {
      const auto guard = runtime_->lock();
      asked = runtime_->control().store().ask(runtime_->clock().now(), std::move(request));
    }
    const bool ended = wait_for(*asked, deadline);
    if (!ended) throw_late(asked->request);
    runtime_->check_alive();
    if (asked->lost) throw_lost(asked->request, *asked->lost);
    if (asked->reply->kind == ReplyKind::refused) throw InvalidArgument(*asked->reply->value);
    return *asked->reply;
  }

  // A request that does not end here is given up, however this rank leaves the call.
  bool wait_for(const JobStore::Asked& asked, TimePoint deadline) {
    const std::shared_ptr<void> give_up(nullptr, [&](void*) {
      if (runtime_->is_forked()) return;
      const auto guard = runtime_->lock();
      runtime_->control().store().give_up(asked);
    });
    const auto ended = [&] { return asked.has_ended() || runtime_->is_leaving(); };
    return runtime_->wait(ended, deadline);
  }

  static void check(const store::Request& request) {
    store::check_key(request.key);
    const std::size_t bytes = request.key.size() + request.value.size() + request.expected.value_or("").size();
    if (bytes <= control::store_bytes_max) return;
    throw InvalidArgument(fmt::format(
        "{} of {}: {} bytes of key and value, and the job's store takes at most {}; send larger values with broadcast",
        name_of(request.kind), store::shown_key(request.key), bytes, control::store_bytes_max));
  }

  [[noreturn]] void throw_late(const store::Request& request) const {
    const bool waits = request.kind == Kind::get || request.kind == Kind::wait;
    store::throw_timeout(
        "the job's store", name_of(request.kind), request.key,
        waits ? "nobody has set it" : fmt::format("rank {}, which keeps the store, has not answered", keeper()));
  }
  [[noreturn]] void throw_lost(const store::Request& request, int rank) const {
    const std::string reason =
        rank == runtime_->transport().rank()
            ? std::string("the other ranks have declared this rank lost")
            : fmt::format("rank {}, which kept the job's store, is lost, and the store with it", rank);
    throw PeerLost(
        fmt::format("{} of {} in the job's store: {}", name_of(request.kind), store::shown_key(request.key), reason),
        rank, runtime_->host_of(rank), reason);
  }
  [[nodiscard]] int keeper() const {
    const auto guard = runtime_->lock();
    return runtime_->control().store().keeper();
  }

  std::shared_ptr<Runtime> runtime_;
};

}  // namespace

std::shared_ptr<Store> job_store(const Group& group) {
  if (!group.valid()) throw InvalidArgument("job_store: this group is empty; pass the world, or a group made from it");
  return std::make_shared<StoreOfJob>(group.core()->runtime_handle());
}

}  // namespace tutti
