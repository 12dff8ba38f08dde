// run.hpp: `tutti bench`, from options to tables.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/bench_case.hpp"
#include "bench/libraries.hpp"

namespace tutti::bench {

enum class Form : std::uint8_t { in_place, out_of_place };

struct BenchOptions {
  std::vector<BenchVerb> verbs{};
  int ranks = 2;
  std::vector<std::int64_t> sizes{};
  DType dtype = DType::float32;
  std::vector<std::string> backends{"auto"};
  std::vector<Form> forms{Form::in_place};  // where the verb has one; others have two arrays
  Memory memory = Memory::heap;
  bool is_stale = false;  // arrays are not rewritten between calls
  std::vector<std::string> against{};
  bool limits = false;
  int repeats = 7;
  bool bound = false;  // each rank to one processor, those of all libraries alike
  BenchHosts hosts{};
  std::string json_path{}, plot_path{};
};

/// The cases of one verb and form, without those that rounding makes equal.
std::vector<BenchCase> cells_of(const BenchOptions& options, const BenchVerb& verb, Form form);

/// Prints as it measures. Whether all results were right.
bool run(const BenchOptions& options);

}  // namespace tutti::bench
