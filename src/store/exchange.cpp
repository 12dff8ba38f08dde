// exchange.cpp: exchange and barrier over any store.
// SPDX-License-Identifier: Apache-2.0
//
// Rank r sets <name>/r to a random mark and its blob. Rank 0 waits for them in turn and sets <name>/all to '+' and the joined
// blobs, to '-' and the text of a Timeout, or to '!' and that of an InvalidArgument; everybody else waits for that one key.
#include "store/exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include <tutti/error.hpp>

#include "base/bytes.hpp"
#include "store/limits.hpp"
#include "wire/secret.hpp"

namespace tutti {

namespace {

// What it may take beyond the deadline to find out who is missing.
constexpr Duration grace = std::chrono::seconds(1);
constexpr std::size_t mark_bytes = 16;

TimePoint steady_now() { return std::chrono::steady_clock::now(); }

std::string key_of(const StoreExchange& where, int rank) { return fmt::format("{}/{}", where.name, rank); }
std::string result_key(const StoreExchange& where) { return fmt::format("{}/all", where.name); }

void check(const StoreExchange& where) {
  if (where.size >= 1 && where.rank >= 0 && where.rank < where.size) return;
  throw InvalidArgument(fmt::format("rank {} cannot take part in the meeting {} of {} ranks: ranks are 0 to {}",
                                    where.rank, store::shown_key(where.name), where.size, where.size - 1));
}

std::string join(const std::vector<std::string>& blobs) {
  ByteWriter writer;
  for (const std::string& blob : blobs) writer.string(blob);
  std::string joined = "+";
  joined.append(reinterpret_cast<const char*>(writer.data().data()), writer.size());
  return joined;
}

std::vector<std::string> take_apart(const StoreExchange& where, std::string_view joined) {
  ByteReader reader(std::as_bytes(std::span(joined)), "the result of a meeting");
  std::vector<std::string> blobs(static_cast<std::size_t>(where.size));
  for (std::string& blob : blobs) blob = reader.string(store::value_bytes_max);
  reader.expect_end();
  return blobs;
}

// "1, 5 and 37 more"
std::string list_of(const std::vector<int>& ranks) {
  constexpr std::size_t shown_max = 16;
  const std::size_t shown = std::min(ranks.size(), shown_max);
  std::string text =
      fmt::format("{}", fmt::join(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (ranks.size() > shown) text += fmt::format(" and {} more", ranks.size() - shown);
  return text;
}

std::string describe_missing(const StoreExchange& where, const std::vector<int>& missing) {
  const char* what = missing.size() == 1 ? "rank {} of {} is missing" : "ranks {} of {} are missing";
  return fmt::format("the meeting {} missed its deadline: {}; see whether they were started, and how they ended",
                     store::shown_key(where.name), fmt::format(fmt::runtime(what), list_of(missing), where.size));
}

// Those from `first` on whose key is not there. Looks for `grace` at most, so the list can be too short, never wrong.
std::vector<int> find_missing(Store& store, const StoreExchange& where, int first) {
  const TimePoint latest = deadline_after(steady_now(), grace);
  std::vector<int> missing;
  try {
    for (int rank = first; rank < where.size; ++rank) {
      if (!store.try_get(key_of(where, rank), latest)) missing.push_back(rank);
    }
  } catch (const Timeout&) {}
  return missing;
}

// Sets this rank's key. Two that claim one rank may bring the same blob; the mark tells them apart.
void arrive(Store& store, const StoreExchange& where, std::string_view blob) {
  std::string marked(mark_bytes, '\0');
  wire::fill_random(std::as_writable_bytes(std::span(marked)));
  marked += blob;
  if (store.compare_set(key_of(where, where.rank), std::nullopt, marked, where.deadline) == marked) return;
  throw InvalidArgument(
      fmt::format("rank {} of {} is taken in the meeting {}: two processes have the same rank, or the name "
                  "was used before; check how the ranks are numbered",
                  where.rank, where.size, store::shown_key(where.name)));
}

std::string collect(Store& store, const StoreExchange& where, int rank) {
  try {
    return store.get(key_of(where, rank), where.deadline).substr(mark_bytes);
  } catch (const Timeout&) {
    std::vector<int> missing = find_missing(store, where, rank);
    if (missing.empty()) missing.push_back(rank);  // it came in this moment; too late all the same
    const std::string text = describe_missing(where, missing);
    store.set(result_key(where), "-" + text, deadline_after(steady_now(), grace));
    throw Timeout(fmt::format("rank 0 of {}: {}", where.size, text));
  }
}

std::vector<std::string> gather(Store& store, const StoreExchange& where, std::string_view blob) {
  std::vector<std::string> blobs{std::string(blob)};
  for (int rank = 1; rank < where.size; ++rank) blobs.push_back(collect(store, where, rank));
  const std::string joined = join(blobs);
  const TimePoint latest = deadline_after(where.deadline, grace);  // it must not fail now that all are there
  if (joined.size() > store::value_bytes_max) {
    const std::string text = fmt::format("the blobs of the meeting {} have {} bytes together, at most {} are allowed",
                                         store::shown_key(where.name), joined.size(), store::value_bytes_max);
    store.set(result_key(where), "!" + text, latest);
    throw InvalidArgument(fmt::format("rank 0 of {}: {}", where.size, text));
  }
  store.set(result_key(where), joined, latest);
  return blobs;
}

// Rank 0's verdict. If it does not even give one in time, what can be found out from here.
std::string await_result(Store& store, const StoreExchange& where) {
  try {
    return store.get(result_key(where), where.deadline);
  } catch (const Timeout&) {}
  try {
    return store.get(result_key(where), deadline_after(steady_now(), grace / 2));
  } catch (const Timeout&) {}
  const std::vector<int> missing = find_missing(store, where, 0);
  const std::string text = missing.empty() ? fmt::format(
                                                 "the meeting {} missed its deadline: all ranks came, but rank 0 does "
                                                 "not answer",
                                                 store::shown_key(where.name))
                                           : describe_missing(where, missing);
  throw Timeout(fmt::format("rank {} of {}: {}", where.rank, where.size, text));
}

}  // namespace

std::vector<std::string> exchange(Store& store, const StoreExchange& where, std::string_view blob) {
  check(where);
  arrive(store, where, blob);
  if (where.rank == 0) return gather(store, where, blob);
  const std::string result = await_result(store, where);
  const std::string_view content = std::string_view(result).substr(1);
  if (result[0] == '+') return take_apart(where, content);
  const std::string text = fmt::format("rank {} of {}: {}", where.rank, where.size, content);
  if (result[0] == '!') throw InvalidArgument(text);
  throw Timeout(text);
}

void barrier(Store& store, const StoreExchange& where) { (void)exchange(store, where, {}); }

}  // namespace tutti
