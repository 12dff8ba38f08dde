// cuda_host_call.hpp: a call on arrays of a GPU, by way of the host: out of the GPU, the collective on the CPUs, into the GPU.
// SPDX-License-Identifier: Apache-2.0
//
// Serves every call, also between hosts, also where the GPU's memory cannot be shared.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <tutti/backend.hpp>

#include "backend/cuda_call.hpp"
#include "backend/staged_call.hpp"

namespace tutti {

class CudaHostCall final : public PreparedCall {
 public:
  struct Parts {
    StagingParts staging{};
    cuda::Device* device = nullptr;
    cuda::BlockPool *pinned = nullptr, *on_device = nullptr;
    int* running = nullptr;  // how many calls are under way
  };
  CudaHostCall(const Parts& parts, const Request& request);
  ~CudaHostCall() override { cancel(); }

  bool start(const Buffers& buffers, const Signature& signature) override;
  bool poll() override;
  void cancel() override;
  [[nodiscard]] Progress progress() const override;

 private:
  enum class Stage : std::uint8_t { idle, fetching, collective, delivering };

  void fetch();
  bool start_collective();
  void deliver();
  void release();

  Parts parts_;
  Request asked_;  // as it was checked; its arrays are those it was prepared with
  std::unique_ptr<PreparedCall> inner_;
  GpuWork work_;
  Stage stage_ = Stage::idle;
  Buffers arrays_{};
  Signature signature_{};
  Allocate caller_allocates_, host_allocates_;
  cuda::Block host_input_, host_output_, packed_input_, packed_output_;
  struct Learned {
    DType dtype = DType::uint8;
    std::vector<std::int64_t> shape{};
    std::uint8_t kind = 0;
    bool is_known = false;
  } learned_;  // of a result whose shape came with the data
};

}  // namespace tutti
