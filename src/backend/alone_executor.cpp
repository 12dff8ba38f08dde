// alone_executor.cpp: collectives of a group of one.
// SPDX-License-Identifier: Apache-2.0
#include "backend/alone_executor.hpp"

#include <cstring>

#include "kernel/kernel.hpp"
#include "plan/layout.hpp"

namespace tutti {
namespace {

class AloneCall final : public PreparedCall {
 public:
  explicit AloneCall(const ExecutionSpec& what) : what_(what), count_(output_count(what.spec)) {}

  bool start(const Buffers& buffers, const Signature&) override {
    const Spec& spec = what_.spec;
    if (count_ == 0 || buffers.output == nullptr) return true;
    if (spec.verb == Verb::exscan) {
      kernel::fill_identity(what_.op, what_.dtype, buffers.output, count_);
    } else if (spec.verb == Verb::permute && spec.pairs.empty()) {
      kernel::fill_zero(what_.dtype, buffers.output, count_);
    } else if (buffers.output != buffers.input) {
      std::memmove(buffers.output, buffers.input, static_cast<std::size_t>(count_) * size_of(what_.dtype));
    }
    return true;
  }
  bool poll() override { return true; }
  void cancel() override {}
  [[nodiscard]] Progress progress() const override { return {.how = "copy", .step = 1, .step_count = 1}; }

 private:
  ExecutionSpec what_;
  std::int64_t count_;  // elements of the result
};

}  // namespace

std::unique_ptr<PreparedCall> AloneExecutor::prepare(const ExecutionSpec& what) {
  return std::make_unique<AloneCall>(what);
}

}  // namespace tutti
