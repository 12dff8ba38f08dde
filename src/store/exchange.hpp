// exchange.hpp: ranks that share nothing but a store meet in it.
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

// Everybody's blob, by rank, on every rank. Rank 0 gathers and hands out: 3n requests in all. When rank 0's deadline passes,
// all who wait get Timeout at once; it names the ranks that are missing, and is what late ones get, too. InvalidArgument for
// a rank outside 0 … size − 1, for the second of two that claim the same rank, and for blobs that are too large together.
std::vector<std::string> exchange(Store& store, const StoreExchange& where, std::string_view blob);

// Nobody leaves before all have come.
void barrier(Store& store, const StoreExchange& where);

}  // namespace tutti
