// tune_questions.cpp: what `tutti tune` asks, and how it reads the answers.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "bench/statistics.hpp"
#include "bench/tune.hpp"

namespace tutti::bench {

namespace {

constexpr std::int64_t KiB = 1 << 10, MiB = 1 << 20;

struct Kind {
  Verb verb;
  bool in_place = false;
  Memory memory = Memory::heap;
};

std::vector<BenchCase> bench_cases(int ranks, const std::vector<Kind>& kinds, const std::vector<std::int64_t>& sizes) {
  std::vector<BenchCase> made;
  for (const Kind& kind : kinds) {
    for (const std::int64_t bytes : sizes) {
      made.push_back(
          make_bench_case({.verb = kind.verb, .in_place = kind.in_place, .memory = kind.memory}, bytes, ranks));
    }
  }
  return made;
}

}  // namespace

std::vector<Question> questions_about_shared_memory(int ranks, bool oversubscribed) {
  const std::string_view one_shot = oversubscribed ? "one_shot_bytes_max_oversubscribed"
                                    : ranks == 2   ? "one_shot_bytes_max_alternating"
                                                   : "one_shot_bytes_max";
  const Kind reduced{.verb = Verb::all_reduce, .in_place = true};
  const Kind reduced_apart{.verb = Verb::all_reduce};
  const Kind reduced_in_common{.verb = Verb::all_reduce, .in_place = true, .memory = Memory::empty};
  const Kind broadcast{.verb = Verb::broadcast}, gathered{.verb = Verb::all_gather};
  const Kind exchanged{.verb = Verb::all_to_all};
  std::vector<Question> asked{
      {.limit = "inline_bytes_max",
       .values = {0, 112, 240, inline_room_bytes},
       .bench_cases = bench_cases(ranks, {reduced, broadcast}, {128, 256, 512})},
      {.limit = "chunk_bytes",
       .values = {32 * KiB, 64 * KiB, 128 * KiB},  // a slot's bytes
       .bench_cases = bench_cases(ranks, {reduced, broadcast}, {1 * MiB, 8 * MiB})},
      {.limit = "one_way_chunk_bytes",
       .values = {32 * KiB, 64 * KiB, 128 * KiB},
       .bench_cases = bench_cases(ranks, {broadcast, Kind{.verb = Verb::reduce}}, {64 * KiB, 256 * KiB, 1 * MiB})},
      {.limit = "alternating_chunk_bytes",
       .values = {16 * KiB, 32 * KiB, 64 * KiB, 128 * KiB},
       .bench_cases = bench_cases(ranks, {Kind{.verb = Verb::reduce_scatter}}, {256 * KiB, 1 * MiB, 4 * MiB})},
      {.limit = one_shot,
       .values = {4 * KiB, 16 * KiB, 64 * KiB, 128 * KiB, 512 * KiB},
       .bench_cases = bench_cases(ranks, {reduced}, {1 * KiB, 4 * KiB, 16 * KiB, 64 * KiB})},
      {.limit = "direct_copy_bytes_min",
       .values = {32 * KiB, 64 * KiB, 256 * KiB, never},
       .bench_cases = bench_cases(ranks, {gathered, exchanged}, {64 * KiB * ranks, 256 * KiB * ranks})},
      {.limit = "read_bytes_max",
       .values = {1 * MiB, 8 * MiB, 64 * MiB},
       .bench_cases = bench_cases(ranks, {gathered, exchanged}, {2 * MiB * ranks, 16 * MiB * ranks})},
      {.limit = "read_scattered_bytes_min",
       .values = {512 * KiB, 2 * MiB, 8 * MiB},
       .bench_cases = bench_cases(ranks, {Kind{.verb = Verb::scatter}}, {1 * MiB, 4 * MiB})},
      {.limit = "read_by_two_bytes_min",
       .values = {0, 1, 1 * MiB, never},
       .bench_cases = bench_cases(ranks, {gathered, exchanged, Kind{.verb = Verb::scatter}}, {512 * KiB, 4 * MiB})},
      {.limit = "direct_reduce_bytes_min",
       .values = {256 * KiB, 1 * MiB, 4 * MiB},
       .bench_cases = bench_cases(ranks, {reduced_in_common}, {512 * KiB, 2 * MiB})},
      {.limit = "stream_bytes_min",
       .values = {0, 4 * MiB, 16 * MiB, never},
       .bench_cases = bench_cases(ranks, {reduced_apart, gathered}, {8 * MiB, 32 * MiB})},
      {.limit = "stream_gather_bytes_min",
       .values = {2 * MiB, 8 * MiB, 32 * MiB},
       .bench_cases = bench_cases(ranks, {Kind{.verb = Verb::gather}}, {4 * MiB, 16 * MiB})},
  };
  // Where ranks share cores nothing is cut finer than chunk_bytes says.
  std::erase_if(asked, [&](const Question& one) {
    return (oversubscribed && one.limit == "one_way_chunk_bytes") ||
           ((oversubscribed || ranks != 2) && one.limit == "alternating_chunk_bytes") ||
           (ranks == 2 && one.limit == "read_scattered_bytes_min") ||
           ((oversubscribed || ranks != 2) && one.limit == "read_by_two_bytes_min") ||
           (ranks != 2 && one.limit == "inline_bytes_max");
  });
  return asked;
}

std::int64_t& limit_of(SharedLimits& limits, std::string_view name) {
  return limits.*std::ranges::find(shared_limits, name, &SharedLimit::name)->value;
}

Standing standing_of(const Times& times) {
  Standing standing;
  for (const std::vector<double>& own : times) {
    std::vector<double> ratios;
    for (std::size_t bench_case = 0; bench_case < own.size(); ++bench_case)
      ratios.push_back(times.front()[bench_case] / own[bench_case]);
    standing.speeds.push_back(geometric_mean(ratios));
  }
  const auto copy = standing.speeds.begin() + 1;
  standing.noise = std::max(*copy, 1 / *copy);
  standing.speeds.erase(copy);
  return standing;
}

std::size_t winner_of(const Standing& standing, double worth_a_change) {
  const auto fastest = std::ranges::max_element(standing.speeds);
  const bool is_worth_it = *fastest >= worth_a_change * standing.noise;
  return is_worth_it ? static_cast<std::size_t>(fastest - standing.speeds.begin()) : 0;
}

std::vector<TableRow> rows_of(Verb verb, int ranks, const std::vector<Choice>& choices) {
  std::vector<TableRow> rows;
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const bool last = i + 1 == choices.size();
    // Half-way to the next size, as sizes go: by factors.
    const std::int64_t end = last ? INT64_MAX
                                  : static_cast<std::int64_t>(std::sqrt(static_cast<double>(compared_bytes[i]) *
                                                                        static_cast<double>(compared_bytes[i + 1])));
    if (!rows.empty() && rows.back().choice == choices[i]) {
      rows.back().bytes_max = end;
    } else {
      rows.push_back({.verb = verb,
                      .ranks_min = ranks,
                      .ranks_max = ranks,
                      .bytes_min = begin,
                      .bytes_max = end,
                      .choice = choices[i]});
    }
    begin = last ? end : end + 1;
  }
  return rows;
}

}  // namespace tutti::bench
