// registry.hpp: the table of backends, and how a group chooses among those that serve it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/backend.hpp>

#include "engine/executor.hpp"
#include "plan/select.hpp"
#include "record/step_trace.hpp"

namespace tutti {

/// What the rows are made from. All that is pointed to outlives the backends.
struct BackendParts {
  const GroupFacts* facts = nullptr;
  const Table* table = nullptr;
  Transport* transport = nullptr;
  std::shared_ptr<Executor> local_peers{};     // of the members on this host, in shared memory; null: none
  std::span<const BackendFactory> extensions;  // of the program's own; they are asked first
  const BackendFactory* mpi = nullptr;         // null, or empty: this job has not joined MPI
  record::StepTrace* trace = nullptr;          // null: steps of plans are not written down
  // Of the rows for GPUs: by which ranks tell each other on the host what has to be known, and what the others leave to the last one.
  std::shared_ptr<Executor> host{};
  std::shared_ptr<Backend> cuda{};
  std::string_view asked{};  // the group is to use this one
};

/// One kind of backend.
struct BackendRow {
  std::string_view name;
  bool is_for_gpus;
  /// Null: it does not serve this group.
  std::shared_ptr<Backend> (*make)(const BackendParts& parts);
};

/// In the order in which they are asked: a request goes to the first that serves it. Where the group asks for a backend, those before it are left
/// out. One for GPUs is asked first then, and the others serve memory of the CPU.
std::span<const BackendRow> backend_table();

class Backends {
 public:
  Backends() = default;
  /// A group that this process is a member of.
  explicit Backends(const BackendParts& parts);

  /// The first that serves the request; `refusals` gets what those before it said. Throws Unsupported with the last one's reason if none does.
  [[nodiscard]] Backend& choose(const Request& request, std::string* refusals = nullptr) const;
  /// Of the one that is asked first; "none" for a group that this process is not in.
  [[nodiscard]] std::string_view name() const { return all_.empty() ? "none" : all_.front()->name(); }
  /// As of a backend: of any of them.
  [[nodiscard]] bool must_be_polled() const {
    return std::ranges::any_of(all_, [](const auto& backend) { return backend->must_be_polled(); });
  }

 private:
  void add(const BackendRow& row, const BackendParts& parts);

  std::vector<std::shared_ptr<Backend>> all_;
};

}  // namespace tutti
