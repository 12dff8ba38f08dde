// rank.hpp: the rank of any library: runs turns as the coordinator tells it, and reports its times.
// SPDX-License-Identifier: Apache-2.0
//
// All libraries in C++ share this code, so that arrays, changes, clocks and checks are the same for all of them.
// Between turns a rank sleeps in read(), with no call of its library pending, so that a library that polls does not
// disturb the next.
#pragma once

#include <memory>
#include <string>

#include "bench/arrays.hpp"
#include "bench/bench_case.hpp"

namespace tutti::bench {

/// One call. `out` is the input itself where the call works in place.
struct TimedCall {
  const BenchCase& bench_case;
  void* in = nullptr;
  void* out = nullptr;
  ArrayCounts counts{};
  int root = 0;
};

class Library {
 public:
  virtual ~Library() = default;
  [[nodiscard]] virtual RankPosition position() const = 0;
  /// Its version, and what else distinguishes one run from another.
  [[nodiscard]] virtual std::string describe() const = 0;
  /// Called before the first turn of a case; throws Unsupported where it cannot do it.
  virtual void prepare(const BenchCase& bench_case) = 0;
  virtual std::shared_ptr<void> allocate(std::int64_t bytes, Memory memory);
  virtual void barrier() = 0;
  virtual void call(const TimedCall& call) = 0;
};

/// The root of a call: the ranks in turn, so that a root that runs ahead does not hide the time of a call.
constexpr int root_of_call(std::int64_t number, int ranks) { return static_cast<int>(number % ranks); }

/// The arrays of one case, kept from turn to turn.
class Workplace {
 public:
  Workplace(Library& library, const BenchCase& bench_case);
  [[nodiscard]] const BenchCase& bench_case() const { return bench_case_; }
  /// Throws what the library throws.
  Answer run(const Turn& turn);

 private:
  struct Slot {
    std::shared_ptr<void> in{}, out{};
  };
  void reserve(int calls);
  void write_inputs(int calls);
  double run_batch(int calls);  // µs per call
  [[nodiscard]] std::int64_t count_wrong(int calls) const;
  [[nodiscard]] const Slot& slot_of(int call) const;
  [[nodiscard]] std::int64_t shift_of(int call) const { return bench_case_.is_stale ? 0 : batch_ + call; }

  Library& library_;
  BenchCase bench_case_;
  RankPosition position_;
  ArrayCounts counts_;
  Pattern own_;
  std::vector<Slot> slots_{};
  std::int64_t batch_ = 0;  // the inputs' shift, and the first root
};

/// Connects to the coordinator's socket, identifies itself, and serves turns until the coordinator closes the socket.
// "core" in the environment of a rank of any library: it is bound to the processor with its number.
inline constexpr const char* bind_variable = "TUTTI_BENCH_BIND";

void serve(Library& library, const std::string& socket_path, const std::string& name);

}  // namespace tutti::bench
