// layout.hpp: how the records of one rank lie in memory that its launcher and the tools read.
// SPDX-License-Identifier: Apache-2.0
//
// One writer, the rank; readers copy and check. A reader may come at any time, also after the rank was killed: so each entry has a
// number that is 0 while it is being written, and everything else that changes is one word. Readers believe no index that they have
// not checked (snapshot.cpp).
//
// A segment is a Fixed part and a ring of Entry behind it, as many as the file has room for. Where all is traced, half of that room is a
// ring of StepEntry, behind the other one.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include <tutti/verb.hpp>

namespace tutti::record {

inline constexpr std::uint64_t magic = 0x3144524f43455254u;  // "TRECORD1"
inline constexpr std::uint32_t version = 2;

using Word = std::atomic<std::uint64_t>;
using Half = std::atomic<std::uint32_t>;
static_assert(Word::is_always_lock_free && Half::is_always_lock_free);

/// What calls of one shape have in common. Written for every call as it is.
struct CallShape {
  std::uint64_t bytes = 0;
  std::uint16_t group = 0;  // its place in Fixed::groups
  std::uint16_t how = 0;    // its place in Fixed::names
  std::uint8_t verb = 0, dtype = 0, op = 0, flags = 0;
  std::int32_t peer = -1;  // a root, or the other end of a message; in the group
  std::uint32_t tag = 0;

  static constexpr std::uint8_t rooted = 1;   // `peer` counts
  static constexpr std::uint8_t reduces = 2;  // `op` counts
};
static_assert(sizeof(CallShape) == 24);

enum class State : std::uint32_t { under_way = 0, at_once = 1, ended = 2, failed = 3 };

struct alignas(64) Entry {
  Word number;          // 1, 2, … since the start; 0: it is being written
  Word started, ended;  // ticks
  Word sequence;        // collectives: the call's number in its group
  CallShape shape;
  Half site;   // its place in Fixed::sites; 0: not known
  Half state;  // State
};
static_assert(sizeof(Entry) == 64);

enum class StepKind : std::uint8_t {
  send,
  recv,
  reduce,
  copy,
  finish,
  fill,  // of a plan
  call,  // of a plan: a collective of some of the ranks
  addresses,
  in_place,
  round,  // in shared memory: the ranks tell where their arrays lie, read them there, or use slots
};
inline constexpr std::uint8_t step_kind_count = 10;

/// What a rank did within a call. Written when it is over.
struct alignas(64) StepEntry {
  Word number;                            // 1, 2, … since the start; 0: it is being written
  Word started, ended;                    // ticks
  std::uint64_t group = 0, sequence = 0;  // those of its call
  std::uint64_t bytes = 0;
  std::uint32_t phase = 0, tag = 0;  // of its message
  std::int32_t peer = -1;            // of its message: a rank in the world
  StepKind kind = StepKind::copy;
};
static_assert(sizeof(StepEntry) == 64);

struct Counters {
  Word calls, bytes, failed;
  Word busy;    // ticks between start and end of those that were not over at once
  Word polled;  // ticks that a thread of the program waited with the rank's lock, as it does at first
  Word waited;  // ticks that threads waited without it; several may at once
};

template <std::size_t Bytes>
using Text = std::array<char, Bytes>;  // ends with a zero

struct GroupRow {
  Word id;  // 0: never used
  Half size, rank;
  Half gone;          // its handle is; the row is used again when there is no other left
  Text<112> members;  // "world", "ranks 0, 3-7"
};
struct Name {
  Text<48> text;
};
struct Site {
  Text<160> text;  // "train.py:41"
};

/// Two clocks at one moment.
struct Moment {
  Word ticks, steady_ns, real_ns;
};

/// What the call that waits longest waits for, as the rank found out by asking.
struct Stall {
  Half version;  // odd: it is being written
  Half step, step_count;
  Word entry;  // the number of its Entry; 0: none waits for long
  Text<480> text;
};

inline constexpr std::size_t groups_max = 64, names_max = 64, sites_max = 512, stack_bytes_max = 16384;

enum class Life : std::uint32_t { starting = 0, joined = 1, left = 2 };

struct Fixed {
  Word magic;
  Half version;
  Half life;         // Life
  Word entry_count;  // a power of two
  Word fixed_bytes;  // where the ring begins
  Word step_count;   // entries of the ring of steps: as many, or none
  Text<64> job, host;
  Half rank, size, node;
  Word process, process_started;  // field 22 of /proc/PID/stat: another process of the same number is told apart
  Moment begin, latest;           // clocks when the record was opened, and now and then since
  alignas(64) Word written;       // entries that were begun
  Word steps_written;
  alignas(64) Half asked;  // a tool increments it, wakes who sleeps on it, and waits for `answered`
  Half answered;
  Half answers;  // somebody does
  Half stack_bytes;
  alignas(64) Stall stall;
  Text<1024> error;  // the latest
  Text<192> ending;  // how its process ended, written by its launcher
  std::array<GroupRow, groups_max> groups;
  std::array<std::array<Counters, verb_count>, groups_max> counters;
  std::array<Name, names_max> names;
  std::array<Site, sites_max> sites;
  std::array<char, stack_bytes_max> stack;
};

inline constexpr std::size_t entry_count_usual = 2048;
constexpr std::size_t fixed_bytes() { return (sizeof(Fixed) + 4095) / 4096 * 4096; }
constexpr std::size_t segment_bytes(std::size_t entries) { return fixed_bytes() + entries * sizeof(Entry); }
constexpr std::size_t traced_bytes(std::size_t entries) { return segment_bytes(entries) + entries * sizeof(StepEntry); }

/// The name of a segment without a place in any file system, and the ending of one that has.
inline constexpr const char* memory_name = "tutti-record";
inline constexpr const char* file_ending = ".tuttirecord";

}  // namespace tutti::record
