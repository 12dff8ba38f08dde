// cuda_backend.hpp: the backend for arrays on a GPU.
// SPDX-License-Identifier: Apache-2.0
//
// A call is over when the GPU has written its result: no stream waits for another process, so no stream hangs when one dies. See
// docs/decisions/0017-gpus-are-waited-for-on-the-host.md.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <tutti/backend.hpp>

#include "backend/cuda_sharing.hpp"
#include "cuda/memory.hpp"
#include "engine/aligned_buffer.hpp"
#include "engine/executor.hpp"

namespace tutti {

class CudaBackend final : public Backend {
 public:
  struct Parts {
    const GroupFacts* facts = nullptr;     // outlives the backend
    std::shared_ptr<Executor> executor{};  // on memory of the CPU, for all members
    bool is_one_host = false;
  };
  explicit CudaBackend(Parts parts);
  ~CudaBackend() override;

  [[nodiscard]] std::string_view name() const override { return "cuda"; }
  [[nodiscard]] std::optional<std::string> refuses(const Request& request) const override;
  std::unique_ptr<PreparedCall> prepare(const Request& request) override;
  [[nodiscard]] Order order() const override { return Order::one_at_a_time; }
  [[nodiscard]] bool is_worth_spinning() const override { return parts_.is_one_host; }
  /// Nothing wakes a thread when a GPU has done its work.
  [[nodiscard]] bool must_be_polled() const override { return running_ > 0; }

 private:
  Parts parts_;
  BufferPool buffers_;
  cuda::BlockPool pinned_{cuda::BlockPool::Kind::pinned}, on_device_{cuda::BlockPool::Kind::device};
  CudaSharing sharing_;
  int running_ = 0;
};

}  // namespace tutti
