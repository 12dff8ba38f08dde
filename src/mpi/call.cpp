// call.cpp: a collective through MPI, step by step.
// SPDX-License-Identifier: Apache-2.0
#include "mpi/call.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include <tutti/error.hpp>

#include "backend/lowering.hpp"

namespace tutti::mpi {
namespace {

// One segment is copied while MPI works on another.
constexpr std::size_t lane_count = 2;

/// In an uneven all_to_all each rank knows what it sends and receives alone. MPI has undefined behaviour where two ranks differ.
bool has_pairwise_counts(const ExecutionSpec& what) {
  return what.spec.verb == Verb::all_to_all && !what.spec.counts.empty();
}

/// What a rank tells another one before an uneven all_to_all.
struct PairCounts {
  std::int64_t sent = 0;     // to that rank
  std::int64_t longest = 0;  // of all that it sends or receives
};
constexpr int words_of_pair = sizeof(PairCounts) / sizeof(std::int64_t);

}  // namespace

Call::Call(Parts parts, const ExecutionSpec& what)
    : parts_(std::move(parts)), what_(what), segments_(what, parts_.segment_bytes), lanes_(lane_count) {
  for (Lane& lane : lanes_) lane.flight.call = make_call(library());
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
    // Once the sizes have been exchanged, the ranks have agreed on the call, and the rest of it follows.
    const bool is_agreed = what_.phase == data_phase && (signature_.flags & Signature::sizes_follow) != 0;
    if (is_agreed) return start_counts();
    stage_ = Stage::round;
  }
  if (stage_ == Stage::round) return advance_round();
  if (stage_ == Stage::counts) return advance_counts();
  if (stage_ == Stage::data) return advance_data();
  return stage_ == Stage::idle;
}

RoundRecord Call::own_record() const {
  RoundRecord record{.lowest = signature_.sequence,
                     .highest = signature_.sequence,
                     .signature = signature_,
                     .rank = parts_.facts->rank};
  if (segments_.fused() != Fused::nothing) segments_.fill(record, input_);
  return record;
}

bool Call::advance_round() {
  Communicator& communicator = *parts_.communicator;
  for (;;) {
    if (communicator.is_in_round() && !communicator.ends_round()) return false;
    if (is_entered_) {
      is_entered_ = false;
      const RoundRecord& result = communicator.result();
      if (result.lowest == signature_.sequence) return take_verdict();
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
  const auto size = static_cast<std::size_t>(spec.size);
  counts_.send = parts_.buffers->take();
  counts_.recv = parts_.buffers->take();
  auto* const sent = reinterpret_cast<PairCounts*>(counts_.send.reserve(size * sizeof(PairCounts)));
  counts_.recv.reserve(size * sizeof(PairCounts));
  std::vector<int> counts(size, words_of_pair), offsets;
  for (std::size_t rank = 0; rank < size; ++rank) {
    sent[rank] = {.sent = spec.counts[rank], .longest = segments_.longest()};
    offsets.push_back(static_cast<int>(rank) * words_of_pair);
  }
  TuttiMpiCollective what{};
  what.kind = TUTTI_MPI_ALL_TO_ALL;
  what.dtype = static_cast<int>(DType::int64);
  what.send = counts_.send.data();
  what.recv = counts_.recv.data();
  Segment& arguments = lanes_[0].segment;  // MPI reads the arrays until the call has ended
  arguments.counts = counts;
  arguments.offsets = offsets;
  what.counts = what.recv_counts = arguments.counts.data();
  what.offsets = what.recv_offsets = arguments.offsets.data();
  parts_.communicator->start(counts_, what, "MPI_Ialltoallv");
  stage_ = Stage::counts;
  return advance_counts();
}

bool Call::advance_counts() {
  if (!parts_.communicator->ends(counts_, "MPI_Ialltoallv")) return false;
  const auto* const told = reinterpret_cast<const PairCounts*>(counts_.recv.data());
  std::int64_t longest = segments_.longest();
  for (int rank = 0; rank < what_.spec.size; ++rank) {
    const std::int64_t expected = what_.spec.recv_counts[static_cast<std::size_t>(rank)];
    if (told[rank].sent != expected) {
      throw TransferFailed(fmt::format("{} elements were expected and {} are sent", expected, told[rank].sent), rank,
                           TransferFailed::Reason::size);
    }
    longest = std::max(longest, told[rank].longest);
  }
  segment_count_ = segments_.count_of(longest);
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

void Call::launch(Lane& lane) {
  lane.segment.send = memory_for(lane.flight.send, segments_.send_bytes());
  lane.segment.recv = memory_for(lane.flight.recv, segments_.recv_bytes());
  segments_.fill(lane.segment, started_, input_);
  parts_.communicator->start(lane.flight, lane.segment.what, name_of(what_.spec.verb));
  ++started_;
}

bool Call::advance_data() {
  const auto lanes = static_cast<std::int64_t>(lane_count);
  for (;;) {
    while (started_ < segment_count_ && started_ - ended_ < lanes)
      launch(lanes_[static_cast<std::size_t>(started_ % lanes)]);
    if (ended_ == segment_count_) break;
    Lane& oldest = lanes_[static_cast<std::size_t>(ended_ % lanes)];
    if (!parts_.communicator->ends(oldest.flight, name_of(what_.spec.verb))) return false;
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
  for (Lane& lane : lanes_) {
    parts_.buffers->give_back(std::move(lane.flight.send));
    parts_.buffers->give_back(std::move(lane.flight.recv));
  }
  parts_.buffers->give_back(std::move(counts_.send));
  parts_.buffers->give_back(std::move(counts_.recv));
  parts_.buffers->give_back(std::move(whole_input_));
}

// The caller's arrays have never been MPI's. What MPI still works on is left to the communicator.
void Call::cancel() {
  if (stage_ == Stage::idle) return;
  std::vector<InFlight> flights;
  for (Lane& lane : lanes_) {
    if (!lane.flight.is_under_way) continue;
    flights.push_back(std::exchange(lane.flight, InFlight{}));
    lane.flight.call = make_call(library());
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
