// call.hpp: one shape of call on a communicator of MPI: a round, then its segments.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tutti/backend.hpp>

#include "engine/aligned_buffer.hpp"
#include "engine/executor.hpp"
#include "mpi/communicator.hpp"
#include "mpi/segments.hpp"

namespace tutti::mpi {

/// What the ranks find out together before the data of an uneven all_to_all moves. Reduced by the maximum.
struct PairsVerdict {
  std::int64_t has_misfit = 0;  // 1: a rank is sent another number of elements than it expects
  std::int64_t longest = 0;     // of all blocks
};

class Call final : public PreparedCall {
 public:
  struct Parts {
    const GroupFacts* facts = nullptr;  // outlive the call, as do the buffers
    std::shared_ptr<Communicator> communicator{};
    BufferPool* buffers = nullptr;
    std::int64_t segment_bytes = 0;
  };
  Call(Parts parts, const ExecutionSpec& what);
  ~Call() override { cancel(); }

  bool start(const Buffers& buffers, const Signature& signature) override;
  bool poll() override;
  void cancel() override;
  [[nodiscard]] Progress progress() const override;

 private:
  enum class Stage : std::uint8_t {
    idle,
    opening,   // the communicator is being made
    round,     // the ranks agree on the call
    awaiting,  // word that another rank gave the call up
    counts,    // the ranks tell each other what each sends to each
    verdict,   // the ranks agree on whether that is what each expects
    data,
  };

  /// Whether the round is over in which all ranks are with this call.
  bool ends_round();
  bool take_verdict();
  bool start_counts();
  bool advance_counts();
  bool advance_verdict();
  bool start_data();
  bool advance_data();
  void launch(InFlight& lane);
  std::byte* memory_for(AlignedBuffer& buffer, std::size_t bytes);
  [[nodiscard]] RoundRecord own_record() const;
  bool finish();
  void give_memory_back();
  [[nodiscard]] const Library& library() const { return parts_.communicator->library(); }

  Parts parts_;
  ExecutionSpec what_;
  Segments segments_;
  Buffers arrays_{};
  const std::byte* input_ = nullptr;
  AlignedBuffer whole_input_;
  Signature signature_{};
  Stage stage_ = Stage::idle;
  bool is_entered_ = false;  // this call's record is in the round
  std::int64_t segment_count_ = 0, started_ = 0, ended_ = 0;
  std::vector<InFlight> lanes_;
  InFlight counts_;
  PairsVerdict pairs_{};
  std::string misfit_;  // what this rank expects of another, and does not get; empty: all fits
};

}  // namespace tutti::mpi
