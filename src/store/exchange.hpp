// exchange.hpp: all-gather and barrier over a key-value store.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tutti/store.hpp>

namespace tutti {

struct StoreExchange {
  std::string_view name;  // serves one exchange or barrier of this store
  int rank;
  int size;
  TimePoint deadline;
};

// Returns the blobs of all ranks, in rank order, on every rank. Rank 0 gathers and distributes: 3n requests in all.
// When rank 0's deadline passes, all waiting ranks get a Timeout at once that names the missing ranks; a rank that
// comes later gets it too. InvalidArgument for a rank outside 0 … size − 1, for the second of two processes that claim
// one rank, and for blobs that are too large together.
std::vector<std::string> exchange(Store& store, const StoreExchange& where, std::string_view blob);

// No rank returns before all ranks have entered.
void barrier(Store& store, const StoreExchange& where);

}  // namespace tutti
