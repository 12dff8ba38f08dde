// message.hpp: the control messages and their encoding.
// SPDX-License-Identifier: Apache-2.0
//
// A message is a heartbeat, or on a link, flooded, or routed. When a message is decoded, ranks in it are checked
// against the world's size, and texts, lists and blobs against the limits below, before memory is allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "control/cause.hpp"
#include "store/protocol.hpp"

namespace tutti::control {

inline constexpr std::size_t text_bytes_max = 8 * 1024;
inline constexpr std::size_t blob_bytes_max = 56 * 1024;
inline constexpr std::size_t probe_bytes_max = blob_bytes_max;
inline constexpr std::size_t store_bytes_max = blob_bytes_max;  // key, expected and new value of a request together
inline constexpr std::size_t listed_ranks_max = 1024;           // of a list that is only shown to people
inline constexpr std::size_t positions_max = 1024;              // in one goodbye

// ---- to everybody

struct Suspect {  // the origin accuses a rank
  int accused = 0;
  bool is_witness = true;  // false: it never had a link to the accused, and cannot tell a death from a goodbye
  std::string reason;
  bool is_certain = false;  // the launcher has seen the accused's process end
  friend bool operator==(const Suspect&, const Suspect&) = default;
};
struct Alive {                // the origin was accused, and lives
  std::uint32_t away_ms = 0;  // if it was stopped for a while just now and knows it: how long
  friend bool operator==(const Alive&, const Alive&) = default;
};
struct Lost {  // decided: this rank is lost
  int rank = 0;
  Cause cause;
  friend bool operator==(const Lost&, const Lost&) = default;
};
struct Proposal {  // the origin wants to break a group
  std::uint64_t group = 0;
  std::uint32_t epoch = 0;
  Cause cause;
  friend bool operator==(const Proposal&, const Proposal&) = default;
};
struct Broken {  // decided: this group is broken
  std::uint64_t group = 0;
  std::uint32_t epoch = 0;
  Cause cause;
  friend bool operator==(const Broken&, const Broken&) = default;
};
struct Position {  // how far a rank has come in a group
  std::uint64_t group = 0;
  std::uint32_t epoch = 0;
  std::uint64_t calls = 0;    // it has taken part in calls 0 to calls − 1, and in no other
  std::uint64_t history = 0;  // digest of those calls that took place,
  std::uint64_t refused = 0;  // and of the numbers of those that some rank refused
  bool is_known = true;       // false: the group broke, and the digests say nothing
  friend bool operator==(const Position&, const Position&) = default;
};
struct Goodbye {  // the origin starts no more calls; what it has posted still goes on
  std::vector<Position> positions;
  bool more = false;       // positions follow in another goodbye
  bool has_store = false;  // it has the whole store of the job; otherwise it never takes it
  friend bool operator==(const Goodbye&, const Goodbye&) = default;
};
struct Departed {  // a witness: this rank said goodbye
  int rank = 0;
  friend bool operator==(const Departed&, const Departed&) = default;
};
struct Refused {
  std::uint64_t group = 0;
  std::uint32_t epoch = 0;
  std::uint64_t sequence = 0;
  std::string text;
  friend bool operator==(const Refused&, const Refused&) = default;
};
struct StoreMoved {  // this rank keeps the job's store from now on (store_handover.hpp)
  int keeper = 0;
  friend bool operator==(const StoreMoved&, const StoreMoved&) = default;
};
using FloodBody = std::variant<Suspect, Alive, Lost, Proposal, Broken, Goodbye, Departed, Refused, StoreMoved>;

// ---- to one rank

struct Probe {
  std::uint64_t id = 0;
  std::vector<std::byte> question;
  friend bool operator==(const Probe&, const Probe&) = default;
};
struct ProbeAnswer {
  std::uint64_t id = 0;
  std::vector<std::byte> answer;
  friend bool operator==(const ProbeAnswer&, const ProbeAnswer&) = default;
};

// Which creation of a group: a hash of the ordered members and the caller's key, and how many the rank has started with
// it.
struct CreationName {
  std::uint64_t list = 0;
  std::uint64_t ordinal = 0;
  friend auto operator<=>(const CreationName&, const CreationName&) = default;
};
struct Join {  // member → lowest member
  CreationName name;
  std::uint32_t member_count = 0;
  std::vector<int> members;  // the first listed_ranks_max of them, in order
  friend bool operator==(const Join&, const Join&) = default;
};
struct Missing {  // lowest → member: not yet; these have not joined
  CreationName name;
  Cause cause;  // as it would be reported if the deadline passed now
  friend bool operator==(const Missing&, const Missing&) = default;
};
struct Made {  // lowest → member
  CreationName name;
  std::uint64_t group = 0;
  std::vector<std::byte> blob;
  friend bool operator==(const Made&, const Made&) = default;
};
struct Taken {  // member → lowest: the group arrived
  CreationName name;
  friend bool operator==(const Taken&, const Taken&) = default;
};
struct GaveUp {  // member → lowest: no longer waiting
  CreationName name;
  Cause cause;
  friend bool operator==(const GaveUp&, const GaveUp&) = default;
};
struct CalledOff {  // lowest → member: this creation has failed
  CreationName name;
  Cause cause;
  friend bool operator==(const CalledOff&, const CalledOff&) = default;
};

// The job's store (job_store.hpp). Ids are the asking rank's own.
struct StoreAsked {  // any rank → keeper
  store::Request::Kind kind = store::Request::Kind::set;
  std::uint64_t id = 0;
  std::uint32_t slot = 0;  // the latest request of its slot: nobody waits for the answer to an earlier one
  std::string key;
  bool has_expected = false;
  std::string expected;
  std::string value;
  std::int64_t amount = 0;
  friend bool operator==(const StoreAsked&, const StoreAsked&) = default;
};
struct StoreAnswered {  // keeper → the rank that asked
  bool waits = false;   // the key is not there yet: an answer follows
  store::Reply::Kind kind = store::Reply::Kind::absent;
  std::uint64_t id = 0;
  std::string value;
  std::int64_t number = 0;
  friend bool operator==(const StoreAnswered&, const StoreAnswered&) = default;
};
// How the store gets to another keeper (store_handover.hpp).
struct StoreOffered {  // keeper that leaves → successor
  std::uint32_t parts = 0;
  friend bool operator==(const StoreOffered&, const StoreOffered&) = default;
};
struct StoreFetched {       // successor → keeper
  std::uint32_t taken = 0;  // this many parts have arrived: send the next one
  friend bool operator==(const StoreFetched&, const StoreFetched&) = default;
};
struct StorePart {  // keeper → successor
  std::uint32_t part = 0;
  std::vector<std::byte> bytes;
  friend bool operator==(const StorePart&, const StorePart&) = default;
};
using RoutedBody = std::variant<Probe, ProbeAnswer, Join, Missing, Made, Taken, GaveUp, CalledOff, StoreAsked,
                                StoreAnswered, StoreOffered, StoreFetched, StorePart>;

// ---- on a link

struct Beat {
  std::uint32_t lag_ms = 0;  // how long the sender was kept from its links lately: it may be as late again
  friend bool operator==(const Beat&, const Beat&) = default;
};
struct Seen {  // the receiver's goodbye arrived, and was handed on
  friend bool operator==(const Seen&, const Seen&) = default;
};
struct Link {  // the sender takes this link into its network
  friend bool operator==(const Link&, const Link&) = default;
};
struct Flooded {
  int origin = 0;
  std::uint64_t number = 0;
  FloodBody body;
  friend bool operator==(const Flooded&, const Flooded&) = default;
};
struct Routed {
  int origin = 0;
  int to = 0;
  int hops_left = 0;
  RoutedBody body;
  friend bool operator==(const Routed&, const Routed&) = default;
};
using Message = std::variant<Beat, Link, Flooded, Routed, Seen>;

std::vector<std::byte> encode(const Message& message);
// Throws MalformedMessage (base/bytes.hpp).
Message decode(std::span<const std::byte> bytes, int world_size);

}  // namespace tutti::control
