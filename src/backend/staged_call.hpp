// staged_call.hpp: any request on an executor: the exchange of sizes if need be, then packing, the collective, and unpacking.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <tutti/backend.hpp>

#include "backend/block_layout.hpp"
#include "backend/size_exchange.hpp"
#include "backend/staging.hpp"
#include "engine/executor.hpp"

namespace tutti {

/// What the calls of one group share. All outlive them.
struct StagingParts {
  const GroupFacts* facts = nullptr;
  Executor* executor = nullptr;
  BufferPool* buffers = nullptr;
};

/// A prepared call for the request. Where its arrays are used where they lie, it is the executor's own.
std::unique_ptr<PreparedCall> prepare_on(const StagingParts& parts, const Request& request);

class StagedCall final : public PreparedCall {
 public:
  StagedCall(const StagingParts& parts, const Request& request);

  bool start(const Buffers& buffers, const Signature& signature) override;
  void wake_peers() override;
  bool poll() override;
  void cancel() override;
  [[nodiscard]] Progress progress() const override;

 private:
  enum class Stage : std::uint8_t { idle, sizes, data };

  bool start_data();
  void lay_out_data();
  bool finish();
  [[nodiscard]] Staging::Job job() const {
    const DType own = (request_.input.present() ? request_.input : request_.output).dtype();
    return {.request = &request_, .layout = &layout_, .wire = is_struct(own) ? own : what_.dtype};
  }

  StagingParts parts_;
  Request asked_;    // as it was checked; its arrays are those it was prepared with
  Request request_;  // with the arrays, and the sizes, of this start
  Signature signature_{};
  Stage stage_ = Stage::idle;
  std::optional<SizeExchange> sizes_;
  BlockLayout layout_;
  Staging staging_;
  ExecutionSpec what_, prepared_for_;
  std::unique_ptr<PreparedCall> data_;  // for `prepared_for_`
};

}  // namespace tutti
