// round.hpp: rounds of a communicator: the records of all ranks, combined, on every rank.
// SPDX-License-Identifier: Apache-2.0
//
// By recursive doubling over MPI's messages, because its non-blocking and persistent reductions take twice as long for so few bytes (two ranks of a host: 0.5 µs
// against 0.9 to 1.2). Where the size is no power of two, some even ranks give their records to the next rank first, and get the
// result from it. Records are combined in the order of ranks, so all ranks have the same bits.
// Cost: steps log2(p), and two more where p is no power of two; bytes at most 256 a step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "mpi/call_handle.hpp"
#include "mpi/library.hpp"
#include "mpi/round_record.hpp"

namespace tutti::mpi {

struct RoundStep {
  enum class Kind : std::uint8_t {
    give,            // send the record
    take,            // receive one of lower ranks
    swap_with_low,   // send the record, and receive one of lower ranks
    swap_with_high,  // … of higher ranks
    replace,         // receive the result
  };
  Kind kind = Kind::give;
  int peer = 0;

  [[nodiscard]] bool sends() const { return kind != Kind::take && kind != Kind::replace; }
  [[nodiscard]] bool receives() const { return kind != Kind::give; }
  /// Makes the rank's own record of that and the one that this step has received.
  void combine_with(RoundRecord& own, const RoundRecord& received) const;
};

/// What a rank does in a round, step by step.
std::vector<RoundStep> round_steps(int rank, int size);

/// Rounds one after the other. MPI uses its memory while one is under way.
class Rounds {
 public:
  Rounds(const Library& library, TuttiMpiCommunicator* communicator);

  void begin(const RoundRecord& record);
  [[nodiscard]] bool is_under_way() const { return is_under_way_; }
  /// Goes on; true once the round is over, and result() is what the ranks brought, combined.
  bool ends();
  [[nodiscard]] const RoundRecord& result() const { return own_; }

 private:
  void start_step();

  const Library& library_;
  TuttiMpiCommunicator* communicator_;
  CallHandle call_;
  std::vector<RoundStep> steps_;
  std::size_t step_ = 0;
  bool is_under_way_ = false;
  RoundRecord own_, received_;
};

}  // namespace tutti::mpi
