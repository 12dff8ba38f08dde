// store_connector.cpp: barrier, broadcast and exchange over a store.
// SPDX-License-Identifier: Apache-2.0
//
// Every call has a number, which is part of its keys. In a meeting (barrier, exchange) each rank writes its value and
// counts itself; whoever completes the count publishes the result. Once a rank has left meeting n, every rank has
// entered it, and so has left all calls before: their keys can go. Whoever has read a result counts itself out; the rank
// that serves the store stays until the readers of its last calls have done so.
#include "rendezvous/store_connector.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <tutti/error.hpp>

#include "base/bytes.hpp"
#include "rendezvous/membership.hpp"

namespace tutti::rendezvous {
namespace {

std::string join_values(const std::vector<std::string>& values) {
  ByteWriter writer;
  for (const std::string& value : values) writer.string(value);
  const auto bytes = writer.data();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<std::string> split_values(std::string_view text, int count) {
  ByteReader reader(std::as_bytes(std::span(text)), "the values of an exchange");
  std::vector<std::string> values;
  for (int i = 0; i < count; ++i) values.push_back(reader.string(reader.remaining()));
  reader.expect_end();
  return values;
}

}  // namespace

StoreConnector::~StoreConnector() {
  if (process_ != getpid()) {
    static_cast<void>(new Parts(std::move(parts_)));  // to stop the server's thread would stop it in the parent
    return;
  }
  if (parts_.host != nullptr) wait_for_readers();
  parts_.store.reset();
}

// A rank that died reading is not waited for longer than this; nor does a destructor throw.
void StoreConnector::wait_for_readers() noexcept {
  const TimePoint deadline = deadline_after(steady_clock().now(), std::chrono::seconds(5));
  try {
    for (const std::string& prefix : unread_) parts_.store->wait(prefix + "read", deadline);
  } catch (const std::exception&) {}
}

// Every rank but the one that published the result reads it. The server may be gone before it has answered the last word:
// that is what it waited for.
void StoreConnector::count_out(const std::string& prefix, TimePoint deadline) {
  if (parts_.store->add(prefix + "readers", 1, deadline) < parts_.place.size - 1) return;
  try {
    parts_.store->set(prefix + "read", "", deadline);
  } catch (const Error&) {}
}

void StoreConnector::expect_readers(const std::string& prefix) {
  if (parts_.host == nullptr || parts_.place.size == 1) return;
  unread_.push_back(prefix);
  written_.insert(written_.end(), {prefix + "readers", prefix + "read"});
}

void StoreConnector::check_process() const {
  if (process_ == getpid()) return;
  throw InvalidArgument(
      fmt::format("this process was forked from rank {} of {} and is no rank itself; call init in the "
                  "process that uses it, or start the child by spawn instead of fork",
                  parts_.place.rank, parts_.place.size));
}

std::string_view StoreConnector::secret() const {
  const auto bytes = parts_.secret.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string StoreConnector::next_prefix() { return fmt::format("connector/{}/", calls_++); }

void StoreConnector::barrier(TimePoint deadline) { (void)meet("", Keep::nothing, deadline); }

std::vector<std::string> StoreConnector::exchange(std::string_view value, TimePoint deadline) {
  return split_values(meet(value, Keep::values, deadline), parts_.place.size);
}

std::string StoreConnector::broadcast(std::string_view value, int root, TimePoint deadline) {
  check_process();
  const auto& [rank, size] = std::pair(parts_.place.rank, parts_.place.size);
  if (root < 0 || root >= size) {
    throw InvalidArgument(
        fmt::format("rank {} of {}: broadcast from rank {}, which is outside the world", rank, size, root));
  }
  const std::string prefix = next_prefix();
  const std::string key = prefix + "value";
  if (rank == root) {
    parts_.store->set(key, value, deadline);
    written_.push_back(key);
    expect_readers(prefix);
    return std::string(value);
  }
  try {
    std::string result = parts_.store->get(key, deadline);
    expect_readers(prefix);
    count_out(prefix, deadline);
    return result;
  } catch (const Timeout&) {
    throw Timeout(
        fmt::format("rank {} of {}: broadcast through the store timed out, waiting for rank {}; check that it "
                    "makes the same calls",
                    rank, size, root));
  }
}

std::string StoreConnector::meet(std::string_view value, Keep keep, TimePoint deadline) {
  check_process();
  const std::string prefix = next_prefix();
  const std::string result_key = prefix + "result";
  const std::string mine = fmt::format("{}{}", prefix, parts_.place.rank);
  Store& store = *parts_.store;
  sweep(deadline);
  store.set(mine, value, deadline);
  written_.push_back(mine);
  if (store.add(prefix + "count", 1, deadline) == parts_.place.size) {
    std::vector<std::string> values;
    for (int rank = 0; keep == Keep::values && rank < parts_.place.size; ++rank) {
      values.push_back(store.get(fmt::format("{}{}", prefix, rank), deadline));
    }
    std::string result = join_values(values);
    store.set(result_key, result, deadline);
    written_.insert(written_.end(), {result_key, prefix + "count"});
    left_meeting(prefix);
    return result;
  }
  std::string result;
  try {
    result = store.get(result_key, deadline);
  } catch (const Timeout&) {
    throw_missing(keep == Keep::values ? "exchange" : "barrier", prefix, deadline);
  }
  left_meeting(prefix);
  count_out(prefix, deadline);
  return result;
}

// Before a meeting, not after it: once a rank has left the last one, the server may be gone.
void StoreConnector::sweep(TimePoint deadline) {
  for (const std::string& key : std::exchange(read_by_all_, {})) (void)parts_.store->remove(key, deadline);
}

void StoreConnector::left_meeting(const std::string& prefix) {
  unread_.clear();
  expect_readers(prefix);
  read_by_all_.insert(read_by_all_.end(), written_before_.begin(), written_before_.end());
  written_before_ = std::exchange(written_, {});
}

void StoreConnector::throw_missing(std::string_view what, const std::string& prefix, TimePoint deadline) {
  const TimePoint grace = deadline_after(deadline, std::chrono::seconds(1));
  std::vector<int> missing;
  for (int rank = 0; rank < parts_.place.size; ++rank) {
    if (!parts_.store->try_get(fmt::format("{}{}", prefix, rank), grace)) missing.push_back(rank);
  }
  throw Timeout(fmt::format(
      "rank {} of {}: {} through the store timed out, waiting for {} {}; check that all ranks make "
      "the same calls",
      parts_.place.rank, parts_.place.size, what, missing.size() == 1 ? "rank" : "ranks", list_ranks(missing)));
}

}  // namespace tutti::rendezvous
