// verb.hpp: the verbs, and what each of them is: said once, in one table, for C++ and Python.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tutti {

/// The values travel in signatures: never renumber them.
enum class Verb : std::uint8_t {
  all_reduce = 0,
  reduce = 1,
  broadcast = 2,
  all_gather = 3,
  gather = 4,
  reduce_scatter = 5,
  scatter = 6,
  all_to_all = 7,
  scan = 8,
  exscan = 9,
  permute = 10,
  barrier = 11,
  send = 12,
  recv = 13,
};
inline constexpr int verb_count = 14;

/// What a verb is, as far as it can be told from the verb alone.
struct VerbTraits {
  /// Which ranks have an array on that side of the call.
  enum class Holders : std::uint8_t { nobody, root, everyone };
  /// What happens to the blocks, one per rank, along an axis.
  enum class Blocks : std::uint8_t { none, joined, split, exchanged };

  std::string_view name;
  Holders inputs = Holders::everyone;
  Holders outputs = Holders::everyone;
  Blocks blocks = Blocks::none;
  bool reduces = false;
  bool is_prefix = false;   // rank r gets the reduction of the ranks before it
  bool is_message = false;  // between two ranks, with a tag and without a number
};

inline constexpr std::array<VerbTraits, verb_count> verb_table = [] {
  using enum VerbTraits::Holders;
  using enum VerbTraits::Blocks;
  return std::array<VerbTraits, verb_count>{{
      {.name = "all_reduce", .reduces = true},
      {.name = "reduce", .outputs = root, .reduces = true},
      {.name = "broadcast", .inputs = root},
      {.name = "all_gather", .blocks = joined},
      {.name = "gather", .outputs = root, .blocks = joined},
      {.name = "reduce_scatter", .blocks = split, .reduces = true},
      {.name = "scatter", .inputs = root, .blocks = split},
      {.name = "all_to_all", .blocks = exchanged},
      {.name = "scan", .reduces = true, .is_prefix = true},
      {.name = "exscan", .reduces = true, .is_prefix = true},
      {.name = "permute"},
      {.name = "barrier", .inputs = nobody, .outputs = nobody},
      {.name = "send", .outputs = nobody, .is_message = true},
      {.name = "recv", .inputs = nobody, .is_message = true},
  }};
}();

constexpr const VerbTraits& traits_of(Verb verb) { return verb_table[static_cast<std::size_t>(verb)]; }

constexpr bool reduces(Verb verb) { return traits_of(verb).reduces; }
constexpr bool is_prefix(Verb verb) { return traits_of(verb).is_prefix; }
constexpr bool is_message(Verb verb) { return traits_of(verb).is_message; }
/// Only the root's input counts.
constexpr bool root_gives(Verb verb) { return traits_of(verb).inputs == VerbTraits::Holders::root; }
/// Only the root gets a result.
constexpr bool root_gets(Verb verb) { return traits_of(verb).outputs == VerbTraits::Holders::root; }
constexpr bool has_root(Verb verb) { return root_gives(verb) || root_gets(verb); }
/// The results are the ranks' inputs, one after the other.
constexpr bool joins(Verb verb) { return traits_of(verb).blocks == VerbTraits::Blocks::joined; }
/// Each rank's result is its block of a larger array.
constexpr bool splits(Verb verb) { return traits_of(verb).blocks == VerbTraits::Blocks::split; }
/// The input holds a block for each rank.
constexpr bool takes_blocks(Verb verb) {
  return splits(verb) || traits_of(verb).blocks == VerbTraits::Blocks::exchanged;
}
/// The output holds a block of each rank.
constexpr bool gives_blocks(Verb verb) {
  return joins(verb) || traits_of(verb).blocks == VerbTraits::Blocks::exchanged;
}
/// Blocks along an axis, one per rank, whose sizes may differ.
constexpr bool has_blocks(Verb verb) { return traits_of(verb).blocks != VerbTraits::Blocks::none; }
/// Where there is a result, it has the shape of the input.
constexpr bool keeps_shape(Verb verb) {
  const VerbTraits& traits = traits_of(verb);
  return traits.blocks == VerbTraits::Blocks::none && !traits.is_message &&
         traits.inputs != VerbTraits::Holders::nobody;
}

std::string_view name_of(Verb verb);
/// The inverse of name_of; throws InvalidArgument with the list of names.
Verb verb_from_name(std::string_view name);

}  // namespace tutti
