// round_record.hpp: what every rank brings into a round, by which the ranks of a group agree on the call that they make.
// SPDX-License-Identifier: Apache-2.0
//
// MPI says nothing about ranks that make different calls on one communicator: they may wait for ever, get an error, or wrong numbers. So
// every call begins with a *round*: an all-reduce of one record, which is the same MPI call whatever the ranks are about to do. Only if all
// records agree does the call itself go to MPI. A small call is over then: its elements travel in the record.
//
// A rank may give a call up before the round is over, because another rank refused its part of that call: the group stays usable. MPI
// cannot cancel the round, so its record stays, and is met by the records of a later call. Therefore records carry the call's number:
//   - a round in which the lowest number is below this rank's belonged to a call that was given up: this rank enters the next round;
//   - a round in which the highest number is above this rank's says that another rank has given this rank's call up: word of that comes
//     through the control network.
// Each rank's numbers never decrease, and a rank that makes call n enters rounds until it is in one in which all numbers are n. As all
// ranks enter the same rounds in the same order, they meet there.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <tutti/request.hpp>

namespace tutti::mpi {

/// What happens to the elements that travel in the record.
enum class Fused : std::uint8_t {
  nothing,  // there are none
  reduced,  // by `op`
  joined,   // each byte comes from one rank; it is 0 at the others
};

struct RoundRecord {
  static constexpr std::size_t payload_bytes = 160;
  static constexpr std::uint64_t closing = ~std::uint64_t{0};  // the number of the last round of a communicator

  std::uint64_t lowest = 0, highest = 0;  // numbers of the calls
  Signature signature{};                  // of `rank`
  Signature other{};                      // of `other_rank`, if it differs
  std::int32_t rank = 0;
  std::int32_t other_rank = -1;  // -1: all signatures are the same
  Fused fused = Fused::nothing;
  Op::Kind op = Op::Kind::sum;
  DType dtype = DType::uint8;
  std::uint8_t bytes = 0;  // of the payload
  std::array<std::byte, payload_bytes> payload{};
};
static_assert(sizeof(RoundRecord) == 256);

/// Combines two records into `to`: associative, and commutative but for the order in which floats are added. The numbers decide first; of
/// records with different numbers nothing else is looked at.
void combine(RoundRecord& to, const RoundRecord& from);

}  // namespace tutti::mpi
