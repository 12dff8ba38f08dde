// explanation.hpp: which algorithm serves a call, why, and what the others would cost: what `tutti explain` says, as data.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tutti/dtype.hpp>

#include "plan/select.hpp"

namespace tutti::cli {

struct Question {
  Verb verb = Verb::all_reduce;
  int ranks = 8;
  std::int64_t bytes = 1 << 20;  // of the whole array: all blocks together, for the verbs with one per rank
  DType dtype = DType::float32;
  int root = 0;
  std::vector<int> node_of{};            // empty: all on one host
  std::optional<Algorithm> algorithm{};  // the one to show instead of the one that is selected
  std::string backend = "auto";          // as the job, or the group, asks for it
};

struct Explanation {
  Shape shape{};
  Spec spec{};                          // of rank 0; the others differ in the rank only
  Choice selected{}, shown{};           // the same, unless the question names an algorithm
  std::vector<Candidate> candidates{};  // the cheapest first
  std::vector<Algorithm> absent{};      // serve the verb, but not here
  std::string why{};                    // one sentence
  std::string served_by{};              // the backend that carries the call out, and why that one
};

/// InvalidArgument where the question makes no sense: no ranks, a root outside, a verb without a plan, …
Explanation explain(const Question& question, const Table& table);

/// "3" ranks on each of `hosts`, the first ones one more where it does not divide; or "4,4,8": so many on each.
/// Empty for one host. InvalidArgument where they do not add up to `ranks`.
std::vector<int> parse_hosts(const std::string& text, int ranks);

/// "ring", "ring in segments of 256 KiB".
std::string name_of(const Choice& choice);

/// "12.3 µs".
std::string seconds_text(double seconds);

}  // namespace tutti::cli
