// membership.hpp: every rank registers in the store, and all get the same verdict: the job is complete, or why not.
// SPDX-License-Identifier: Apache-2.0
//
// Each rank writes its record under its rank and increments a counter; the rank that completes the count publishes the
// list. A rank that finds a contradiction publishes that instead, so that every waiting rank learns it at once. O(1)
// messages per rank, and one more per rank for the last one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/clock.hpp>
#include <tutti/store.hpp>

namespace tutti::rendezvous {

// A rank's registration.
struct MemberRecord {
  int rank = 0;
  int size = 1;
  std::string node;     // ranks with the same text share a node
  std::string machine;  // the real one, whatever `node` was set to
  std::string host;     // as people call it
  std::int64_t pid = 0;
  std::string version;  // of Tutti
  std::string token;    // random; distinguishes two processes, or threads, that claim one rank

  [[nodiscard]] std::string who() const;  // "pid 4711 on host a"
  [[nodiscard]] std::string encode() const;
  static MemberRecord decode(std::string_view text);
};

// One number per rank: nodes are numbered in the order of their lowest ranks.
struct NodeTable {
  std::vector<std::uint32_t> node_of_rank;
  bool one_machine = true;
};

NodeTable number_nodes(const std::vector<MemberRecord>& records);

class Membership {
 public:
  // Keys are in `store` under "rendezvous/". `clock` and `deadline` limit every wait.
  Membership(Store& store, MemberRecord record, const Clock& clock, TimePoint deadline)
      : store_(store), record_(std::move(record)), clock_(clock), deadline_(deadline) {}

  // Throws RendezvousError if this rank contradicts another one; the others are told.
  void sign_in();
  // The verdict, if there is one by `until`. Throws RendezvousError where it is a bad one.
  std::optional<NodeTable> verdict(TimePoint until);
  // What to throw when the deadline passed without a verdict: names the missing ranks, adds what else is known, and
  // tells the others.
  [[noreturn]] void give_up(std::string_view where, std::string_view also = {});
  // Makes every waiting rank throw RendezvousError with this text.
  void spoil(std::string_view why);
  // For the rank that serves the store: waits until all the others have read a bad verdict, or `until`.
  void linger(TimePoint until);

 private:
  [[noreturn]] void contradict(const std::string& why);
  void publish_list();
  void mark_read();
  [[nodiscard]] std::vector<int> ranks_that_signed(TimePoint until);
  [[nodiscard]] std::string key_of(int rank) const;

  Store& store_;
  MemberRecord record_;
  const Clock& clock_;
  TimePoint deadline_;
};

// "2, 5 and 7–31", at most about a line.
std::string list_ranks(const std::vector<int>& ranks);

}  // namespace tutti::rendezvous
