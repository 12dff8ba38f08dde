// alone_executor.hpp: collectives of a group of one: the result is the input, but for what the verb says of an empty rest.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include <tutti/backend.hpp>

#include "engine/executor.hpp"

namespace tutti {

class AloneExecutor final : public Executor {
 public:
  /// `facts` outlive the executor.
  explicit AloneExecutor(const GroupFacts& facts) : facts_(facts) {}

  [[nodiscard]] std::span<const int> members() const override { return facts_.world_of; }
  std::unique_ptr<PreparedCall> prepare(const ExecutionSpec& what) override;
  [[nodiscard]] std::string_view medium() const override { return "memory"; }
  [[nodiscard]] bool widens_small_floats() const override { return true; }  // a sum of one is exact

 private:
  const GroupFacts& facts_;
};

}  // namespace tutti
