// executor_backend.hpp: a backend that stages arrays and leaves the rest to an executor: any verb, any dtype, memory of the CPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <tutti/backend.hpp>

#include "backend/staged_call.hpp"

namespace tutti {

class ExecutorBackend final : public Backend {
 public:
  struct Parts {
    std::string_view name;
    const GroupFacts* facts = nullptr;  // outlives the backend
    std::shared_ptr<Executor> executor{};
    Order order = Order::any;
    bool is_worth_spinning = false;
    bool must_be_polled = false;
    bool takes_own_reductions = true;  // functions of the program's own
  };
  explicit ExecutorBackend(Parts parts) : parts_(std::move(parts)) {}

  [[nodiscard]] std::string_view name() const override { return parts_.name; }
  [[nodiscard]] std::optional<std::string> refuses(const Request& request) const override {
    for (const View* view : {&request.input, &request.output}) {
      if (view->present() && view->device().kind != Device::Kind::cpu)
        return fmt::format("the {} backend works on memory of the CPU; copy the array there first", parts_.name);
    }
    if (!parts_.takes_own_reductions && reduces(request.verb) && request.op.kind() == Op::Kind::own)
      return fmt::format("the {} backend has no reductions by functions of the program's own", parts_.name);
    return std::nullopt;
  }
  std::unique_ptr<PreparedCall> prepare(const Request& request) override {
    return prepare_on({.facts = parts_.facts, .executor = parts_.executor.get(), .buffers = &buffers_}, request);
  }
  [[nodiscard]] Order order() const override { return parts_.order; }
  [[nodiscard]] bool is_worth_spinning() const override { return parts_.is_worth_spinning; }
  [[nodiscard]] bool must_be_polled() const override { return parts_.must_be_polled; }

 private:
  Parts parts_;
  BufferPool buffers_;
};

}  // namespace tutti
