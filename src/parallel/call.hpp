// call.hpp: a collective as a value: everything of a request but its arrays and its group.
// SPDX-License-Identifier: Apache-2.0
//
// Frameworks that trace or differentiate programs keep calls, compare them, write them into their programs and ask for
// their adjoints. A Call can be all that: it has a text form, knows the shape of its result, and holds no memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/request.hpp>
#include <tutti/verbs.hpp>

namespace tutti::parallel {

struct Call {
  Verb verb = Verb::barrier;
  bool is_sendrecv = false;  // not a verb of its own in the core: a send and a receive at the same time
  Op op = Op::sum;
  int root = 0;
  int axis = 0;
  int concat_axis = 0;
  bool stack = false;
  bool uneven = false;
  Sizes sizes{}, recv_sizes{};
  Pairs pairs{};
  bool reverse = false;         // scans: from the last rank down
  int destination = -1;         // sendrecv; −1: nobody
  int source = -1;              // sendrecv; −1: nobody, and zeros arrive
  std::uint32_t tag = 0;        // sendrecv
  std::uint64_t structure = 0;  // see Request::structure
  std::uint8_t kind = 0;        // see Request::kind; not part of the text

  friend bool operator==(const Call&, const Call&) = default;
};

using tutti::name_of;  // of verbs and reductions; calls have one too
/// The name of its verb, as users know it.
std::string_view name_of(const Call& call);
/// A call of the verb with that name; throws InvalidArgument with the list of names.
Call call_named(std::string_view name);
/// The names that call_named() takes.
std::vector<std::string> call_names();

/// The call as one line of text, and back. Fields that have their usual value are left out.
std::string encode(const Call& call);
/// Throws InvalidArgument for anything `encode` does not write.
Call decode_call(std::string_view text);

/// The request to make of it.
Request request_of(const Call& call, const View& input, const View& output);

/// Off their root, `reduce` and `gather` give the caller's array back.
bool gives_input_back(const Call& call, int rank);
/// Whether the result's shape is learned from the other ranks: the call says "uneven" and no sizes.
bool learns_sizes(const Call& call);

/// The shape of what the caller gets, for an array of `shape`. Broadcast and scatter: `shape` is the root's, on every rank.
/// Throws InvalidArgument as the call itself would.
std::vector<std::int64_t> output_shape(const Call& call, std::span<const std::int64_t> shape, int rank, int size);

}  // namespace tutti::parallel
