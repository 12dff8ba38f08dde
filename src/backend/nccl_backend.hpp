// nccl_backend.hpp: the backend for arrays on GPUs of which every rank has one of its own.
// SPDX-License-Identifier: Apache-2.0
//
// See docs/decisions/0031-nccl-behind-an-agreement-on-the-host.md.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <tutti/backend.hpp>

#include "backend/nccl_call.hpp"

namespace tutti {

class NcclBackend final : public Backend {
 public:
  struct Parts {
    const GroupFacts* facts = nullptr;     // outlives the backend
    std::shared_ptr<Executor> executor{};  // on memory of the CPU, for all members
    std::shared_ptr<Backend> cuda{};       // for calls of groups that cannot use NCCL
    bool is_asked = false;
  };
  explicit NcclBackend(Parts parts) {
    group_.facts = parts.facts;
    group_.executor = std::move(parts.executor);
    group_.cuda = std::move(parts.cuda);
    group_.is_asked = parts.is_asked;
  }

  [[nodiscard]] std::string_view name() const override { return "nccl"; }
  [[nodiscard]] std::optional<std::string> refuses(const Request& request) const override {
    if (auto refusal = group_.cuda->refuses(request)) return refusal;  // no array on a GPU, or no GPU
    return nccl_refusal(request, group_.facts->size);
  }
  std::unique_ptr<PreparedCall> prepare(const Request& request) override {
    return std::make_unique<NcclCall>(group_, request);
  }
  [[nodiscard]] Order order() const override { return Order::one_at_a_time; }
  [[nodiscard]] bool is_worth_spinning() const override { return group_.cuda->is_worth_spinning(); }
  /// Nothing wakes a thread when a GPU has done its work.
  [[nodiscard]] bool must_be_polled() const override { return group_.running > 0 || group_.cuda->must_be_polled(); }

 private:
  NcclGroup group_;
};

}  // namespace tutti
