// backend.hpp: who carries out whole requests. A seam: native, later shared memory, mpi, nccl, cuda. Unstable.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/request.hpp>

namespace tutti {

/// Where a piece of work stands, for error reports: "step 9 of 14, waiting for rank 5".
struct Progress {
  std::string how;  // "ring over tcp"
  int step = 0;
  int step_count = 0;
  std::vector<int> waiting_for{};  // ranks in the group
};

/// A request under way. It never blocks: poll() does what can be done now.
class Task {
 public:
  virtual ~Task() = default;
  /// True once everything is done and the output is complete. Throws what went wrong.
  virtual bool poll() = 0;
  /// Gives up. When it returns, nothing touches the caller's memory any more. Allowed at any time, also after a throw.
  virtual void cancel() = 0;
  [[nodiscard]] virtual Progress progress() const = 0;
  /// Gives the task back to its backend for reuse. Only after poll() returned true or cancel().
  virtual void release() = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// Why this backend cannot serve the request; nothing if it can. The same on all ranks.
  [[nodiscard]] virtual std::optional<std::string> refuses(const Request& request) const = 0;
  /// Starts a request that was checked at the door. The backend owns the task until release().
  virtual Task& start(const Request& request) = 0;
};

}  // namespace tutti
