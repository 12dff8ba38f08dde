// registry.cpp: the table of backends, and how a group chooses among those that serve it.
// SPDX-License-Identifier: Apache-2.0
#include "backend/registry.hpp"

#include <fmt/format.h>

#include <tutti/error.hpp>

#include "backend/alone_executor.hpp"
#include "backend/cuda_backend.hpp"
#include "backend/executor_backend.hpp"
#include "engine/plan_executor.hpp"

namespace tutti {
namespace {

using Order = Backend::Order;

std::unique_ptr<Backend> make_alone(const BackendParts& parts) {
  if (parts.facts->size > 1) return nullptr;
  return std::make_unique<ExecutorBackend>(ExecutorBackend::Parts{
      .name = "alone", .facts = parts.facts, .executor = std::make_shared<AloneExecutor>(*parts.facts)});
}

std::unique_ptr<Backend> make_mpi(const BackendParts& parts) {
  return parts.mpi == nullptr || !*parts.mpi ? nullptr : (*parts.mpi)(*parts.facts, *parts.transport);
}

std::unique_ptr<Backend> make_intranode(const BackendParts& parts) {
  const bool serves_all = parts.local_peers && parts.local_peers->members().size() == parts.facts->world_of.size();
  if (!serves_all) return nullptr;
  return std::make_unique<ExecutorBackend>(ExecutorBackend::Parts{.name = "shm",
                                                                  .facts = parts.facts,
                                                                  .executor = parts.local_peers,
                                                                  .order = Order::as_numbered,
                                                                  .is_worth_spinning = true});
}

/// A group that asks for the backend `native` gets plans over links inside its hosts, too.
bool shares_memory(const BackendParts& parts) { return parts.local_peers && parts.asked != "native"; }

std::shared_ptr<Executor> make_plan_executor(const BackendParts& parts) {
  return std::make_shared<PlanExecutor>(
      PlanExecutor::Parts{.facts = parts.facts,
                          .table = parts.table,
                          .transport = parts.transport,
                          .local_peers = shares_memory(parts) ? parts.local_peers.get() : nullptr,
                          .trace = parts.trace});
}

// A plan that spans hosts may come to its sub-collectives in shared memory at different times on different ranks, and those have
// one order.
std::unique_ptr<Backend> make_native(const BackendParts& parts) {
  return std::make_unique<ExecutorBackend>(
      ExecutorBackend::Parts{.name = "native",
                             .facts = parts.facts,
                             .executor = make_plan_executor(parts),
                             .order = shares_memory(parts) ? Order::one_at_a_time : Order::any});
}

// The last one: host arrays never come here, and what it says of an array on a GPU is the reason that is reported.
std::unique_ptr<Backend> make_cuda(const BackendParts& parts) {
  const bool is_alone = parts.facts->size == 1;
  const bool is_one_host =
      is_alone || (shares_memory(parts) && parts.local_peers->members().size() == parts.facts->world_of.size());
  std::shared_ptr<Executor> executor;
  if (is_alone) executor = std::make_shared<AloneExecutor>(*parts.facts);
  else if (is_one_host) executor = parts.local_peers;
  else executor = make_plan_executor(parts);
  return std::make_unique<CudaBackend>(
      CudaBackend::Parts{.facts = parts.facts, .executor = std::move(executor), .is_one_host = is_one_host});
}

constexpr BackendRow rows[] = {
    {"alone", make_alone}, {"mpi", make_mpi}, {"shm", make_intranode}, {"native", make_native}, {"cuda", make_cuda}};

}  // namespace

std::span<const BackendRow> backend_table() { return rows; }

Backends::Backends(const BackendParts& parts) {
  bool is_found = parts.asked.empty();
  for (const BackendFactory& make : parts.extensions) {
    auto backend = make(*parts.facts, *parts.transport);
    if (!backend) continue;
    is_found = is_found || backend->name() == parts.asked;
    if (is_found) all_.push_back(std::move(backend));
  }
  for (const BackendRow& row : backend_table()) {
    is_found = is_found || row.name == parts.asked || parts.facts->size == 1;
    if (!is_found) continue;
    if (auto backend = row.make(parts)) all_.push_back(std::move(backend));
  }
}

Backend& Backends::choose(const Request& request, std::string* refusals) const {
  std::string reason;
  for (const auto& backend : all_) {
    const auto refusal = backend->refuses(request);
    if (!refusal) return *backend;
    reason = *refusal;
    if (refusals != nullptr) *refusals += fmt::format("; not {}: {}", backend->name(), reason);
  }
  throw Unsupported(fmt::format("{}: {}", name_of(request.verb), reason));
}

}  // namespace tutti
