// store_handover.cpp: offering, fetching part by part, and naming the next keeper.
// SPDX-License-Identifier: Apache-2.0
#include "control/store_handover.hpp"

#include <algorithm>
#include <utility>

namespace tutti::control {

// ---- the keeper

void StoreHandover::give(TimePoint now, int keeper, std::vector<std::byte> store) {
  bytes_ = std::move(store);
  successor_ = outside_.next_staying(keeper);
  if (gives()) offer(now);
}

std::uint32_t StoreHandover::part_count() const {
  return static_cast<std::uint32_t>((bytes_.size() + blob_bytes_max - 1) / blob_bytes_max);
}

// A message is lost only with a rank that forwards it and dies. Each offer makes the successor ask again for what it lacks.
void StoreHandover::offer(TimePoint now) {
  offer_at_ = now + retry_;
  outside_.send(successor_, StoreOffered{part_count()});
}

void StoreHandover::on_fetched(TimePoint now, int from, const StoreFetched& message) {
  if (!gives() || from != successor_) return;
  if (message.taken >= part_count()) {
    bytes_ = {};
    outside_.flood({std::exchange(successor_, -1)});
    return;
  }
  offer_at_ = now + retry_;
  const auto rest = std::span(bytes_).subspan(std::size_t{message.taken} * blob_bytes_max);
  const auto part = rest.first(std::min(rest.size(), blob_bytes_max));
  outside_.send(from, StorePart{message.taken, {part.begin(), part.end()}});
}

void StoreHandover::remove_successor(TimePoint now, int rank) {
  if (!gives() || rank != successor_) return;
  successor_ = outside_.next_staying(rank);
  if (gives()) offer(now);
}

bool StoreHandover::poll(TimePoint now) {
  if (!gives() || now < offer_at_) return false;
  offer(now);
  return true;
}

// ---- the successor

void StoreHandover::on_offered(int from, const StoreOffered& message) {
  if (!has_all() && (giver_ != from || parts_ != message.parts)) {
    drop();
    giver_ = from;
    parts_ = message.parts;
  }
  if (giver_ == from) fetch();
}

bool StoreHandover::on_part(int from, const StorePart& message) {
  if (from != giver_ || has_all() || message.part != taken_) return false;
  bytes_.insert(bytes_.end(), message.bytes.begin(), message.bytes.end());
  ++taken_;
  return true;
}

void StoreHandover::drop() {
  bytes_ = {};
  giver_ = -1;
  parts_ = taken_ = 0;
}

}  // namespace tutti::control
