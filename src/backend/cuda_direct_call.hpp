// cuda_direct_call.hpp: a call on arrays of GPUs of one host, which the ranks' leaders read and write where they lie.
// SPDX-License-Identifier: Apache-2.0
//
//   1. Every rank sees to it that its arrays are ready: strided ones are packed, memory that cannot be mapped is copied.
//   2. The ranks tell each other where the arrays are. From here on the leader of a GPU may write to them.
//   3. The leader of each GPU, its lowest rank, launches the work for all ranks on that GPU, and waits for its end.
//   4. A barrier tells everyone that all is written, and that nobody reads any more.
//   5. Results that were not written in their place are unpacked.
// A rank that gives up between 2 and 4 takes back its permission through its mailbox, so that a leader which wakes up late writes nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <tutti/backend.hpp>

#include "backend/cuda_call.hpp"
#include "backend/cuda_host_call.hpp"
#include "backend/cuda_sharing.hpp"
#include "engine/executor.hpp"

namespace tutti {

class CudaDirectCall final : public PreparedCall {
 public:
  struct Parts {
    CudaHostCall::Parts host{};
    CudaSharing* sharing = nullptr;
    bool may_share = true;  // this rank's wish
  };
  CudaDirectCall(const Parts& parts, const Request& request);
  ~CudaDirectCall() override { cancel(); }

  /// Whether calls like this one can be served so. The same on all ranks.
  static bool serves(const Request& request, const GroupFacts& facts);

  bool start(const Buffers& buffers, const Signature& signature) override;
  bool poll() override;
  void cancel() override;
  [[nodiscard]] Progress progress() const override;

 private:
  enum class Stage : std::uint8_t { idle, preparing, records, computing, ending, unpacking, by_host };

  void prepare_arrays();
  [[nodiscard]] std::byte* lend(const View& view, bool is_packed, cuda::Block& block, GpuPlace& place);
  bool start_records();
  bool take_records();
  void launch(int leader);
  bool start_end();
  bool deliver();
  bool advance();
  void release();
  [[nodiscard]] std::uint64_t ticket() const { return signature_.sequence + 1; }
  [[nodiscard]] cuda::Device& device() const { return *parts_.host.device; }
  [[nodiscard]] const GroupFacts& facts() const { return *parts_.host.staging.facts; }

  Parts parts_;
  Request request_;  // with the arrays of this start
  GpuPacking packing_;
  ExecutionSpec what_;
  std::unique_ptr<PreparedCall> exchange_, end_;
  CudaHostCall by_host_;
  GpuWork work_;
  Stage stage_ = Stage::idle;
  Buffers arrays_{};
  Signature signature_{};
  GpuRecord own_{};
  std::vector<GpuRecord> records_;
  cuda::Block input_block_, output_block_;
  cuda::Block permission_;
};

}  // namespace tutti
