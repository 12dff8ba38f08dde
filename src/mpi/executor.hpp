// executor.hpp: collectives of one group through MPI.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "engine/executor.hpp"
#include "mpi/call.hpp"
#include "mpi/process.hpp"

namespace tutti::mpi {

class MpiExecutor final : public Executor {
 public:
  /// `facts` outlive the executor.
  MpiExecutor(const JobFacts& job, const GroupFacts& facts)
      : facts_(facts),
        communicator_(Process::self().communicator_of(job, facts)),
        segment_bytes_(job.segment_bytes > 0 ? job.segment_bytes : usual_segment_bytes(facts.size)) {}

  [[nodiscard]] std::span<const int> members() const override { return facts_.world_of; }
  std::unique_ptr<PreparedCall> prepare(const ExecutionSpec& what) override {
    Process::self().poll_closing();
    return std::make_unique<Call>(
        Call::Parts{
            .facts = &facts_, .communicator = communicator_, .buffers = &buffers_, .segment_bytes = segment_bytes_},
        what);
  }
  [[nodiscard]] std::string_view medium() const override { return "MPI"; }

 private:
  const GroupFacts& facts_;
  std::shared_ptr<Communicator> communicator_;
  std::int64_t segment_bytes_;
  BufferPool buffers_;
};

}  // namespace tutti::mpi
