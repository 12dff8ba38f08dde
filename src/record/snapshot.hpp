// snapshot.hpp: the records of one rank, read and checked: plain values.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tutti/verb.hpp>

#include "record/layout.hpp"

namespace tutti::record {

class Recorder;

/// Times are nanoseconds of the system's clock since 1970.
struct CallRecord {
  std::uint64_t number = 0;    // of all calls of the rank, from 1
  std::uint64_t sequence = 0;  // collectives: in the group
  Verb verb = Verb::barrier;
  State state = State::under_way;
  std::int64_t started_ns = 0, ended_ns = 0;  // the same if it was over at once; ended: 0 while it is under way
  std::uint64_t bytes = 0;
  std::uint8_t dtype = 0, op = 0;
  std::optional<int> peer{};  // a root, or the other end of a message; −1: anyone
  std::uint32_t tag = 0;
  std::uint8_t flags = 0;  // those of CallShape
  std::size_t group = 0;   // its place in Snapshot::groups
  std::string how{}, site{};

  [[nodiscard]] bool is_under_way() const { return state == State::under_way; }
  [[nodiscard]] bool is_message() const { return tutti::is_message(verb); }
};

/// What a rank did within a collective.
struct StepRecord {
  std::uint64_t group = 0, sequence = 0;  // the id of the group, and the number of the call
  StepKind kind = StepKind::copy;
  std::int64_t started_ns = 0, ended_ns = 0;
  std::uint64_t bytes = 0;
  int peer = -1;                     // of a message: a rank in the world
  std::uint32_t phase = 0, tag = 0;  // of a message: what tells it from the others of its call
};

struct VerbCount {
  Verb verb = Verb::barrier;
  std::uint64_t calls = 0, bytes = 0, failed = 0;
  std::int64_t busy_ns = 0, waited_ns = 0;
};

struct GroupRecord {
  std::uint64_t id = 0;
  int size = 0, rank = 0;
  std::string members{};            // "world", "ranks 0, 3-7"
  std::vector<VerbCount> counts{};  // verbs that were called
};

struct StallRecord {
  std::uint64_t number = 0;  // of the call that waits; 0: none waits for long
  int step = 0, step_count = 0;
  std::string text{};
};

struct Snapshot {
  std::string job{}, host{};
  int rank = 0, size = 1, node = 0;
  std::int64_t process = 0;
  std::uint64_t process_started = 0;
  Life life = Life::starting;
  std::int64_t begin_ns = 0,
               read_ns = 0;   // when the rank joined; when this was read, or for an old file, the last sign of life
  std::uint64_t written = 0;  // calls since the start
  std::vector<CallRecord> calls{};    // the latest, oldest first
  std::vector<StepRecord> steps{};    // the latest, in the order in which they ended; traces only
  std::vector<GroupRecord> groups{};  // by place; without id: free
  StallRecord stall{};
  std::string error{}, stack{};
  std::string ending{};  // how its process ended, "its process 4711 was killed by signal 9, …"; empty: not known
  bool answers = false;  // to requests for its stack

  [[nodiscard]] const CallRecord* find(std::uint64_t number) const;
  /// The call under way that was begun first; null: none.
  [[nodiscard]] const CallRecord* oldest_under_way() const;
  [[nodiscard]] const GroupRecord& group_of(const CallRecord& call) const { return groups[call.group]; }
};

enum class Alive : bool { no, yes };
/// Nothing if the file holds no records, or those of another version. With a rank alive the clock of this machine is its clock.
std::optional<Snapshot> read_snapshot(int file, Alive alive);
/// The same without calls: quick.
std::optional<Snapshot> read_counts(int file, Alive alive);
/// Writes down how a rank's process ended, for whoever reads its records.
void note_ending(int file, std::string_view how);
/// Those of this process.
std::optional<Snapshot> read_own(const Recorder& recorder);

/// One object: who, the groups with their counts, the calls.
std::string to_json(const Snapshot& snapshot);
/// "all_reduce #412 (float32 × 1024, sum)", "recv from rank 1 (float32 × 4, tag 3)"
std::string describe(const CallRecord& call);
std::string_view name_of(State state);
std::string_view name_of(StepKind kind);
std::string_view name_of_op(std::uint8_t kind);

}  // namespace tutti::record
