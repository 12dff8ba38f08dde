// call.cpp: a collective through MPI, step by step.
// SPDX-License-Identifier: Apache-2.0
#include "mpi/call.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include <tutti/error.hpp>

#include "backend/lowering.hpp"

namespace tutti::mpi {
namespace {

// One segment is copied while MPI works on another.
constexpr std::size_t lane_count = 2;

/// In an uneven all_to_all each rank alone knows what it sends and receives. MPI has undefined behaviour where two ranks differ, so no
/// rank may give MPI the data before all know that every pair fits: a rank that started alone could not end the call, nor finalise MPI.
bool has_pairwise_counts(const ExecutionSpec& what) {
  return what.spec.verb == Verb::all_to_all && !what.spec.counts.empty();
}

}  // namespace

Call::Call(Parts parts, const ExecutionSpec& what)
    : parts_(std::move(parts)), what_(what), segments_(what, parts_.segment_bytes), lanes_(lane_count) {
  for (InFlight& lane : lanes_) lane.call = make_call(library());
  counts_.call = make_call(library());
}

bool Call::start(const Buffers& buffers, const Signature& signature) {
  arrays_ = buffers;
  input_ = buffers.input;
  signature_ = signature;
  is_entered_ = false;
  stage_ = Stage::opening;
  return poll();
}

bool Call::poll() {
  Communicator& communicator = *parts_.communicator;
  if (stage_ == Stage::opening) {
    if (!communicator.is_open()) return false;
    stage_ = Stage::round;
  }
  if (stage_ == Stage::round) return ends_round() && take_verdict();
  if (stage_ == Stage::counts) return advance_counts();
  if (stage_ == Stage::verdict) return advance_verdict();
  if (stage_ == Stage::data) return advance_data();
  return stage_ == Stage::idle;
}

RoundRecord Call::own_record() const {
  RoundRecord record{.lowest = signature_.sequence,
                     .highest = signature_.sequence,
                     .signature = signature_,
                     .rank = parts_.facts->rank};
  if (stage_ == Stage::verdict) {
    record.fused = Fused::reduced;
    record.op = Op::Kind::max;
    record.dtype = DType::int64;
    record.bytes = sizeof pairs_;
    std::memcpy(record.payload.data(), &pairs_, sizeof pairs_);
  } else if (segments_.fused() != Fused::nothing) {
    segments_.fill(record, input_);
  }
  return record;
}

bool Call::ends_round() {
  Communicator& communicator = *parts_.communicator;
  for (;;) {
    if (communicator.is_in_round() && !communicator.ends_round()) return false;
    if (is_entered_) {
      is_entered_ = false;
      if (communicator.result().lowest == signature_.sequence) return true;
    }
    communicator.begin_round(own_record());
    is_entered_ = true;
  }
}

bool Call::take_verdict() {
  const RoundRecord& result = parts_.communicator->result();
  if (result.highest != signature_.sequence) {
    stage_ = Stage::awaiting;
    return false;
  }
  if (result.other_rank >= 0) {
    stage_ = Stage::awaiting;
    const bool first_differs = result.signature != signature_;
    if (!first_differs && result.other == signature_) return false;  // those two say so
    throw SignatureDiffers("the ranks make different calls", first_differs ? result.rank : result.other_rank,
                           first_differs ? result.signature : result.other);
  }
  parts_.communicator->note_agreed();
  if (segments_.fused() == Fused::nothing) return what_.spec.verb == Verb::barrier ? finish() : start_counts();
  segments_.drain(result, arrays_.output);
  return finish();
}

bool Call::start_counts() {
  if (!has_pairwise_counts(what_)) return start_data();
  const Spec& spec = what_.spec;
  const std::size_t size = static_cast<std::size_t>(spec.size), bytes = size * sizeof(std::int64_t);
  counts_.send = parts_.buffers->take();
  counts_.recv = parts_.buffers->take();
  std::memcpy(counts_.send.reserve(bytes), spec.counts.data(), bytes);
  counts_.recv.reserve(bytes);
  Segment& arguments = counts_.segment;
  arguments.counts.assign(size, 1);
  arguments.offsets.resize(size);
  std::iota(arguments.offsets.begin(), arguments.offsets.end(), 0);
  TuttiMpiCollective& what = arguments.what = {};
  what.kind = TUTTI_MPI_ALL_TO_ALL;
  what.dtype = static_cast<int>(DType::int64);
  what.send = counts_.send.data();
  what.recv = counts_.recv.data();
  what.counts = what.recv_counts = arguments.counts.data();
  what.offsets = what.recv_offsets = arguments.offsets.data();
  parts_.communicator->start(counts_, what, "MPI_Ialltoallv");
  stage_ = Stage::counts;
  return advance_counts();
}

bool Call::advance_counts() {
  if (!parts_.communicator->ends(counts_, "MPI_Ialltoallv")) return false;
  const auto* const told = reinterpret_cast<const std::int64_t*>(counts_.recv.data());
  misfit_.clear();
  for (int rank = 0; rank < what_.spec.size && misfit_.empty(); ++rank) {
    const std::int64_t expected = what_.spec.recv_counts[static_cast<std::size_t>(rank)];
    if (told[rank] == expected) continue;
    misfit_ = fmt::format("rank {} sends rank {} a part of {} elements, but rank {} expects one of {}", rank,
                          what_.spec.rank, told[rank], what_.spec.rank, expected);
  }
  pairs_ = {.has_misfit = misfit_.empty() ? 0 : 1, .longest = segments_.longest()};
  is_entered_ = false;
  stage_ = Stage::verdict;
  return advance_verdict();
}

bool Call::advance_verdict() {
  if (!ends_round()) return false;
  const RoundRecord& result = parts_.communicator->result();
  stage_ = Stage::awaiting;  // word that the group is broken, unless all pairs fit
  if (!misfit_.empty()) throw Mismatch(misfit_);
  if (result.highest != signature_.sequence) return false;
  std::memcpy(&pairs_, result.payload.data(), sizeof pairs_);
  if (pairs_.has_misfit != 0) return false;
  segment_count_ = segments_.count_of(pairs_.longest);
  return start_data();
}

bool Call::start_data() {
  if (!has_pairwise_counts(what_)) segment_count_ = segments_.count();
  started_ = ended_ = 0;
  stage_ = Stage::data;
  if (segments_.needs_whole_input()) {
    const auto bytes = static_cast<std::size_t>(input_count(what_.spec)) * size_of(what_.dtype);
    whole_input_ = parts_.buffers->take();
    if (bytes > 0) std::memcpy(whole_input_.reserve(bytes), arrays_.input, bytes);
    input_ = whole_input_.data();
  }
  return advance_data();
}

/// The buffers that a call takes are those that the last one gave back: none is taken that is not needed.
std::byte* Call::memory_for(AlignedBuffer& buffer, std::size_t bytes) {
  if (bytes > 0 && buffer.capacity() == 0) buffer = parts_.buffers->take();
  return buffer.reserve(bytes);
}

void Call::launch(InFlight& lane) {
  lane.segment.send = memory_for(lane.send, segments_.send_bytes());
  lane.segment.recv = memory_for(lane.recv, segments_.recv_bytes());
  segments_.fill(lane.segment, started_, input_);
  parts_.communicator->start(lane, lane.segment.what, name_of(what_.spec.verb));
  ++started_;
}

bool Call::advance_data() {
  const auto lanes = static_cast<std::int64_t>(lane_count);
  for (;;) {
    while (started_ < segment_count_ && started_ - ended_ < lanes)
      launch(lanes_[static_cast<std::size_t>(started_ % lanes)]);
    if (ended_ == segment_count_) break;
    InFlight& oldest = lanes_[static_cast<std::size_t>(ended_ % lanes)];
    if (!parts_.communicator->ends(oldest, name_of(what_.spec.verb))) return false;
    segments_.drain(oldest.segment, arrays_.output);
    ++ended_;
  }
  segments_.write_rest(arrays_.output);
  return finish();
}

bool Call::finish() {
  stage_ = Stage::idle;
  give_memory_back();
  return true;
}

void Call::give_memory_back() {
  for (InFlight& lane : lanes_) {
    parts_.buffers->give_back(std::move(lane.send));
    parts_.buffers->give_back(std::move(lane.recv));
  }
  parts_.buffers->give_back(std::move(counts_.send));
  parts_.buffers->give_back(std::move(counts_.recv));
  parts_.buffers->give_back(std::move(whole_input_));
}

// The caller's arrays have never been MPI's. What MPI still works on is left to the communicator.
void Call::cancel() {
  if (stage_ == Stage::idle) return;
  std::vector<InFlight> flights;
  for (InFlight& lane : lanes_) {
    if (!lane.is_under_way) continue;
    flights.push_back(std::exchange(lane, InFlight{}));
    lane.call = make_call(library());
  }
  if (counts_.is_under_way) {
    flights.push_back(std::exchange(counts_, InFlight{}));
    counts_.call = make_call(library());
  }
  parts_.communicator->keep(flights);
  parts_.communicator->note_given_up();
  give_memory_back();
  stage_ = Stage::idle;
}

Progress Call::progress() const {
  Progress progress{.how = fmt::format("MPI ({})", library().name)};
  progress.step = stage_ == Stage::data ? 1 + static_cast<int>(std::min<std::int64_t>(ended_, INT32_MAX - 2)) : 0;
  progress.step_count = 1 + static_cast<int>(std::min<std::int64_t>(segments_.count(), INT32_MAX - 2));
  if (stage_ == Stage::idle) return progress;
  for (int rank = 0; rank < parts_.facts->size; ++rank) {
    if (rank != parts_.facts->rank) progress.waiting_for.push_back(rank);
  }
  return progress;
}

}  // namespace tutti::mpi
