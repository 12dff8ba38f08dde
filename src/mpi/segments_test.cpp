// segments_test.cpp: what is copied in and out, without MPI: a group of one rank's view, and the pieces of uneven blocks.
// SPDX-License-Identifier: Apache-2.0
#include "mpi/segments.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace tutti::mpi {
namespace {

ExecutionSpec spec_of(Verb verb, std::vector<std::int64_t> counts, int rank) {
  ExecutionSpec what{.dtype = DType::int32};
  what.spec = {.verb = verb, .rank = rank, .size = static_cast<int>(counts.size()), .counts = std::move(counts)};
  return what;
}

struct Memory {
  std::vector<std::byte> send, recv;
  Segment segment;
  explicit Memory(const Segments& segments) : send(segments.send_bytes()), recv(segments.recv_bytes()) {
    segment.send = send.data();
    segment.recv = recv.data();
  }
};

const std::byte* bytes_of(const std::vector<std::int32_t>& values) {
  return reinterpret_cast<const std::byte*>(values.data());
}

TEST(Segments, AreAsManyAsTheLongestBlockNeeds) {
  // 12 bytes for three blocks: one element of each in a segment.
  const Segments segments(spec_of(Verb::reduce_scatter, {1, 3, 0}, 0), 12);
  EXPECT_EQ(segments.count(), 3);
  EXPECT_EQ(segments.recv_bytes(), 12u);
  EXPECT_EQ(Segments(spec_of(Verb::reduce_scatter, {0, 0, 0}, 0), 12).count(), 0);
}

TEST(Segments, TakeAPieceOfEachBlock) {
  const Segments segments(spec_of(Verb::reduce_scatter, {1, 3, 0}, 1), 12);
  const std::vector<std::int32_t> input{10, 20, 21, 22};
  Memory memory(segments);
  segments.fill(memory.segment, 0, bytes_of(input));
  EXPECT_EQ(memory.segment.counts, (std::vector{1, 1, 0}));
  const auto* const filled = reinterpret_cast<const std::int32_t*>(memory.send.data());
  EXPECT_EQ(filled[0], 10);
  EXPECT_EQ(filled[1], 20);
  segments.fill(memory.segment, 2, bytes_of(input));
  EXPECT_EQ(memory.segment.counts, (std::vector{0, 1, 0}));
  EXPECT_EQ(filled[0], 22);
  EXPECT_EQ(memory.segment.what.count, 1);
}

TEST(Segments, OfAnAllToAllComeBackWhereTheReceivedBlocksLie) {
  ExecutionSpec what = spec_of(Verb::all_to_all, {2, 1}, 0);
  what.spec.recv_counts = {2, 2};
  const Segments segments(what, 8);
  EXPECT_EQ(segments.count(), 2);
  Memory memory(segments);
  std::vector<std::int32_t> output(4, -1);
  const std::vector<std::int32_t> input{1, 2, 3};
  segments.fill(memory.segment, 1, bytes_of(input));
  EXPECT_EQ(memory.segment.counts, (std::vector{1, 0}));
  EXPECT_EQ(memory.segment.recv_counts, (std::vector{1, 1}));
  auto* const received = reinterpret_cast<std::int32_t*>(memory.recv.data());
  received[0] = 7;
  received[1] = 8;
  segments.drain(memory.segment, reinterpret_cast<std::byte*>(output.data()));
  EXPECT_EQ(output, (std::vector{-1, 7, -1, 8}));
}

TEST(Segments, TravelInTheRecordWhereTheyFit) {
  EXPECT_EQ(Segments(spec_of(Verb::all_gather, {10, 30}, 0), 1 << 20).fused(), Fused::joined);
  EXPECT_EQ(Segments(spec_of(Verb::all_gather, {10, 31}, 0), 1 << 20).fused(), Fused::nothing);
  EXPECT_EQ(Segments(spec_of(Verb::reduce_scatter, {1, 1}, 0), 1 << 20).fused(), Fused::reduced);
  EXPECT_EQ(Segments(spec_of(Verb::all_to_all, {1, 1}, 0), 1 << 20).fused(), Fused::nothing);
}

TEST(Segments, OfACallThatStaysInTheRecordAreWrittenFromThere) {
  const Segments segments(spec_of(Verb::scatter, {1, 2}, 1), 1 << 20);
  const std::vector<std::int32_t> input{5, 6, 7};
  RoundRecord record;
  Segments(spec_of(Verb::scatter, {1, 2}, 0), 1 << 20).fill(record, bytes_of(input));
  std::vector<std::int32_t> output(2);
  segments.drain(record, reinterpret_cast<std::byte*>(output.data()));
  EXPECT_EQ(output, (std::vector{6, 7}));
}

TEST(Segments, LeaveTheInputOfAnUnevenExchangeInPlaceToACopy) {
  ExecutionSpec what = spec_of(Verb::all_to_all, {2, 1}, 0);
  EXPECT_FALSE(Segments(what, 8).needs_whole_input());
  what.spec.in_place = true;
  EXPECT_TRUE(Segments(what, 8).needs_whole_input());
}

}  // namespace
}  // namespace tutti::mpi
