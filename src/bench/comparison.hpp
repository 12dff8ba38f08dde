// comparison.hpp: the libraries side by side: each case is measured in turns, library after library, again and again.
// SPDX-License-Identifier: Apache-2.0
//
// Turns interleave so that other load on the machine affects all libraries equally. The time of a batch is that of its
// slowest rank; a turn counts by the median of its batches, a library by the median of its turns. p99 is over all
// batches of all turns.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/library_job.hpp"

namespace tutti::bench {

/// One library in one case.
struct Measurement {
  std::string library{};
  std::string version{};  // as it says it, or nothing
  bool is_peer = false;
  double us_median = 0, us_p99 = 0;
  std::int64_t wrong = 0;
  std::string trouble{};  // why there is no time
};

struct Row {
  BenchCase bench_case{};
  int ranks = 1;
  std::vector<Measurement> measurements{};
  double us_limit = 0;  // what the machine allows; 0: not measured
};

/// Of a library's description of itself; nothing if it names none.
std::string version_in(std::string_view description);

/// The fastest peer, or nullptr where none has a time.
const Measurement* best_peer(const Row& row);

/// How many calls and batches fill a turn, if one call takes this long.
Turn turn_of(const BenchCase& bench_case, double us_per_call);
/// A short turn at the beginning of each turn, which measures that; for large arrays it needs one set of arrays only.
/// The speed may have changed since the last turn: on a busy machine a call takes 1 µs or 4 ms, depending on where the
/// scheduler puts the ranks.
Turn first_turn_of(const BenchCase& bench_case);

class Comparison {
 public:
  Comparison(const Coordinator& coordinator, int repeats) : coordinator_(coordinator), repeats_(repeats) {}
  /// Throws what starting it throws.
  void add_tutti(JobStart start);
  void add_peer(JobStart start);
  /// "openmpi: Open MPI v4.1.4", one for each library.
  [[nodiscard]] std::vector<std::string> descriptions() const;
  /// A peer that crashes is restarted for the next case; one that does not answer in time is not used again. Either way
  /// the reason is reported in its place. Tutti's own failure is thrown. `after_round` is called each time that every
  /// library had a turn.
  std::vector<Measurement> measure(
      const BenchCase& bench_case, const std::function<void()>& after_round = [] {});

 private:
  struct Contender {
    JobStart start{};
    std::unique_ptr<LibraryJob> job{};  // none after a crash, and once it is retired
    bool is_peer = false;
    std::string retired{};
  };
  struct Samples;
  static Answer run_turn(LibraryJob& job, const BenchCase& bench_case);
  void take_turn(Contender& contender, Samples& samples, const BenchCase& bench_case);
  void revive(Contender& contender, Samples& samples);

  const Coordinator& coordinator_;
  int repeats_;
  std::vector<Contender> contenders_{};
};

}  // namespace tutti::bench
