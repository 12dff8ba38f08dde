// call.hpp: one shape of call on a communicator of MPI: a round, then its segments.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <tutti/backend.hpp>

#include "engine/aligned_buffer.hpp"
#include "engine/executor.hpp"
#include "mpi/communicator.hpp"
#include "mpi/segments.hpp"

namespace tutti::mpi {

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
    counts,    // the ranks compare what each sends to each
    data,
  };
  /// A segment, and the call of MPI that works on it.
  struct Lane {
    Segment segment{};
    InFlight flight{};
  };

  bool advance_round();
  bool take_verdict();
  bool start_counts();
  bool advance_counts();
  bool start_data();
  bool advance_data();
  void launch(Lane& lane);
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
  std::vector<Lane> lanes_;
  InFlight counts_;
};

}  // namespace tutti::mpi
