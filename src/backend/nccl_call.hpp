// nccl_call.hpp: a call on arrays of GPUs by NCCL.
// SPDX-License-Identifier: Apache-2.0
//
//   1. The ranks tell each other on the host which GPU, which library and which communicator they have, and compare signatures: NCCL would
//      hang on calls that differ. All come to the same verdict: NCCL, or the backend cuda.
//   2. Where they have no communicator for these GPUs, rank 0 names one, and NCCL connects.
//   3. NCCL puts the work on a stream, behind what the caller's stream has, and its end is asked for.
//   4. A barrier on the host tells that NCCL has nothing more to send for anyone: from then on, a communicator may go at any time.
// A rank that gives up aborts its communicator, which ends NCCL's kernels on its GPU; the next call makes another one.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tutti/backend.hpp>

#include "backend/cuda_call.hpp"
#include "backend/nccl_agreement.hpp"
#include "backend/nccl_communicator.hpp"
#include "backend/nccl_steps.hpp"
#include "cuda/memory.hpp"
#include "engine/executor.hpp"

namespace tutti {

/// What the calls of one group share.
struct NcclGroup {
  const GroupFacts* facts = nullptr;       // outlives the group
  std::shared_ptr<Executor> executor{};    // on memory of the CPU, for all members
  std::shared_ptr<Backend> cuda{};         // serves what NCCL does not
  bool is_asked = false;                   // the group asks for NCCL: it is an error where it cannot be used
  std::optional<std::string> objection{};  // why calls go to `cuda`, as all ranks found in the same call
  std::map<int, std::unique_ptr<NcclCommunicator>> communicators{};  // by GPU
  cuda::BlockPool on_device{cuda::BlockPool::Kind::device};
  int running = 0;  // how many calls are under way
};

class NcclCall final : public PreparedCall {
 public:
  NcclCall(NcclGroup& group, const Request& request);
  ~NcclCall() override { cancel(); }

  bool start(const Buffers& buffers, const Signature& signature) override;
  bool poll() override;
  void cancel() override;
  [[nodiscard]] Progress progress() const override;

 private:
  enum class Stage : std::uint8_t { idle, by_cuda, agreeing, naming, connecting, launching, computing, ending };

  bool start_by_cuda();
  void prepare_arrays();
  void take_records();
  void name_communicator();
  void connect();
  void launch();
  void deliver();
  [[nodiscard]] bool has_computed();
  /// Goes on to the next stage, if it can.
  bool advance();
  bool end_call();
  void release();
  void start_phase(PreparedCall& phase, const Buffers& buffers, Stage stage);
  [[nodiscard]] bool phase_is_over();
  [[nodiscard]] NcclCommunicator& communicator() { return *group_.communicators.at(device_.index()); }
  [[nodiscard]] const GroupFacts& facts() const { return *group_.facts; }

  NcclGroup& group_;
  cuda::Device& device_;
  Request request_;  // with the arrays of this start
  GpuPacking packing_;
  ExecutionSpec what_;
  std::vector<NcclStep> steps_;
  std::unique_ptr<PreparedCall> exchange_, naming_, end_, by_cuda_;
  PreparedCall* phase_ = nullptr;  // of the host, that is under way
  GpuWork work_;
  Stage stage_ = Stage::idle;
  Buffers arrays_{};
  Signature signature_{};
  NcclRecord own_{};
  std::vector<NcclRecord> records_;
  nccl::UniqueId id_{};
  cuda::Block input_block_, output_block_;
};

}  // namespace tutti
