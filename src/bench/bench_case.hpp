// bench_case.hpp: what is measured: one verb on arrays of one size; and the line of text that requests it.
// SPDX-License-Identifier: Apache-2.0
//
// Vocabulary: a *library* (Tutti with some backend, or a peer) runs as a *job* of ranks, which are processes. A *case*
// is one piece of work, the same for all libraries. Libraries take *turns*: in a turn one of them runs some *batches*
// of *calls* while the others sleep. Before each batch every rank rewrites all arrays of the batch, then all ranks
// enter a barrier; only the calls are timed. A *stale* case rewrites nothing: its calls move the same arrays again. Rank programs of peers that are not C++ (bench/peers) use the same lines.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/request.hpp>

namespace tutti::bench {

enum class Memory : std::uint8_t { heap, empty };  // empty: Group::empty, which local peers read without a copy
std::string_view name_of(Memory memory);
Memory memory_from_name(std::string_view name);

/// What Verb::send stands for.
enum class Exchange : std::uint8_t {
  ping_pong,  // there and back between ranks 0 and 1; half of the round trip counts
  sendrecv,   // to the next rank of a ring, from the one before it
  window,     // the same, the array in window_messages messages of which all are under way at once
};
inline constexpr int window_messages = 64;

struct BenchVerb {
  Verb verb = Verb::all_reduce;
  Exchange exchange = Exchange::ping_pong;
  BenchVerb(Verb what) : verb(what) {}
  BenchVerb(Verb what, Exchange how) : verb(what), exchange(how) {}
  friend bool operator==(const BenchVerb&, const BenchVerb&) = default;
};
std::string_view bench_name_of(const BenchVerb& verb);
BenchVerb verb_from_bench_name(std::string_view name);
/// Every verb that can be measured, in the order of the enumeration.
std::vector<BenchVerb> all_verbs();
/// Whether the verb has a form with one array, where others need two.
bool has_in_place_form(Verb verb);

struct BenchCase {
  Verb verb = Verb::all_reduce;
  DType dtype = DType::float32;
  std::int64_t count =
      0;  // elements of the larger array of the call; a multiple of the ranks where it is split or joined
  bool in_place = false;
  Memory memory = Memory::heap;
  Exchange exchange = Exchange::ping_pong;
  bool is_stale = false;
  [[nodiscard]] BenchVerb bench_verb() const { return {verb, exchange}; }
  [[nodiscard]] std::int64_t bytes() const { return count * static_cast<std::int64_t>(size_of(dtype)); }
  friend bool operator==(const BenchCase&, const BenchCase&) = default;
};

/// The case for about this many bytes: at least one element for each rank, and no more arrays than the verb has.
BenchCase make_bench_case(BenchCase wish, std::int64_t bytes, int ranks);

struct Turn {
  BenchCase bench_case{};
  int calls = 1;    // per batch, each on arrays of its own
  int batches = 1;  // timed ones; one more goes first and is not counted
  friend bool operator==(const Turn&, const Turn&) = default;
};

/// "all_reduce float32 1024 in_place heap fresh 64 20"; throws InvalidArgument for anything else.
std::string to_line(const Turn& turn);
Turn turn_from_line(std::string_view line);

/// What a rank reports after a turn.
struct Answer {
  std::vector<double> us_per_call{};  // one per batch
  std::int64_t wrong = 0;             // elements of the last batch with a wrong value
  std::string trouble{};              // why there are no times
  friend bool operator==(const Answer&, const Answer&) = default;
};

/// "ok WRONG US US …" or "trouble TEXT".
std::string to_line(const Answer& answer);
Answer answer_from_line(std::string_view line);

}  // namespace tutti::bench
