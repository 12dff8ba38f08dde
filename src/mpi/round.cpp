// round.cpp: recursive doubling, a step at a time.
// SPDX-License-Identifier: Apache-2.0
#include "mpi/round.hpp"

#include <bit>

namespace tutti::mpi {
namespace {

int bytes_of(const RoundRecord& record) { return static_cast<int>(offsetof(RoundRecord, payload) + record.bytes); }

}  // namespace

// Of the first 2·extra ranks only the odd ones double: their *number* is half their rank. The others' is their rank less `extra`.
std::vector<RoundStep> round_steps(int rank, int size) {
  const int doubling = static_cast<int>(std::bit_floor(static_cast<unsigned>(size))), extra = size - doubling;
  const bool is_paired = rank < 2 * extra;
  if (is_paired && rank % 2 == 0) return {{RoundStep::Kind::give, rank + 1}, {RoundStep::Kind::replace, rank + 1}};
  std::vector<RoundStep> steps;
  if (is_paired) steps.push_back({RoundStep::Kind::take, rank - 1});
  const int number = is_paired ? rank / 2 : rank - extra;
  for (int distance = 1; distance < doubling; distance *= 2) {
    const int other = number ^ distance;
    steps.push_back({other < number ? RoundStep::Kind::swap_with_low : RoundStep::Kind::swap_with_high,
                     other < extra ? 2 * other + 1 : other + extra});
  }
  if (is_paired) steps.push_back({RoundStep::Kind::give, rank - 1});
  return steps;
}

void RoundStep::combine_with(RoundRecord& own, const RoundRecord& received) const {
  if (kind == Kind::swap_with_high) return combine(own, received);
  RoundRecord combined = received;
  if (kind != Kind::replace) combine(combined, own);
  own = combined;
}

Rounds::Rounds(const Library& library, TuttiMpiCommunicator* communicator)
    : library_(library), communicator_(communicator), call_(make_call(library)) {
  int rank = 0, size = 1;
  check(library, library.plugin->place(communicator, &rank, &size), "MPI_Comm_rank");
  steps_ = round_steps(rank, size);
}

void Rounds::begin(const RoundRecord& record) {
  own_ = record;
  step_ = 0;
  is_under_way_ = true;
  start_step();
}

void Rounds::start_step() {
  const RoundStep& step = steps_[step_];
  const TuttiMpiExchange what{.send = &own_,
                              .send_bytes = bytes_of(own_),
                              .destination = step.sends() ? step.peer : -1,
                              .recv = &received_,
                              .recv_bytes = sizeof received_,
                              .source = step.receives() ? step.peer : -1};
  check(library_, library_.plugin->start_exchange(call_.get(), communicator_, &what), "MPI_Isend");
}

bool Rounds::ends() {
  for (;;) {
    int done = 0;
    check(library_, library_.plugin->test(call_.get(), &done), "MPI_Test");
    if (done == 0) return false;
    if (steps_[step_].receives()) steps_[step_].combine_with(own_, received_);
    if (++step_ == steps_.size()) break;
    start_step();
  }
  is_under_way_ = false;
  return true;
}

}  // namespace tutti::mpi
