// registry.cpp: the table of backends, and how a group chooses among those that serve it.
// SPDX-License-Identifier: Apache-2.0
#include "backend/registry.hpp"

#include <fmt/format.h>

#include <tutti/error.hpp>

#include "backend/alone_executor.hpp"
#include "backend/cuda_backend.hpp"
#include "backend/executor_backend.hpp"
#include "backend/nccl_backend.hpp"
#include "engine/plan_executor.hpp"

namespace tutti {
namespace {

using Order = Backend::Order;

std::shared_ptr<Backend> make_alone(const BackendParts& parts) {
  if (parts.facts->size > 1) return nullptr;
  return std::make_shared<ExecutorBackend>(ExecutorBackend::Parts{
      .name = "alone", .facts = parts.facts, .executor = std::make_shared<AloneExecutor>(*parts.facts)});
}

std::shared_ptr<Backend> make_mpi(const BackendParts& parts) {
  return parts.mpi == nullptr || !*parts.mpi ? nullptr : (*parts.mpi)(*parts.facts, *parts.transport);
}

std::shared_ptr<Backend> make_intranode(const BackendParts& parts) {
  const bool serves_all = parts.local_peers && parts.local_peers->members().size() == parts.facts->world_of.size();
  if (!serves_all) return nullptr;
  return std::make_shared<ExecutorBackend>(ExecutorBackend::Parts{.name = "shm",
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
std::shared_ptr<Backend> make_native(const BackendParts& parts) {
  return std::make_shared<ExecutorBackend>(
      ExecutorBackend::Parts{.name = "native",
                             .facts = parts.facts,
                             .executor = make_plan_executor(parts),
                             .order = shares_memory(parts) ? Order::one_at_a_time : Order::any});
}

bool is_one_host(const BackendParts& parts) {
  return parts.facts->size == 1 ||
         (shares_memory(parts) && parts.local_peers->members().size() == parts.facts->world_of.size());
}

std::shared_ptr<Executor> make_host_executor(const BackendParts& parts) {
  if (parts.facts->size == 1) return std::make_shared<AloneExecutor>(*parts.facts);
  return is_one_host(parts) ? parts.local_peers : make_plan_executor(parts);
}

// A group of one has nobody to connect to: NCCL serves it where it is asked for.
std::shared_ptr<Backend> make_nccl(const BackendParts& parts) {
  const bool is_asked = parts.asked == "nccl";
  if (parts.facts->size == 1 && !is_asked) return nullptr;
  return std::make_shared<NcclBackend>(
      NcclBackend::Parts{.facts = parts.facts, .executor = parts.host, .cuda = parts.cuda, .is_asked = is_asked});
}

// The last one: host arrays never come here, and what it says of an array on a GPU is the reason that is reported.
std::shared_ptr<Backend> make_cuda(const BackendParts& parts) { return parts.cuda; }

constexpr BackendRow rows[] = {{"alone", false, make_alone},   {"mpi", false, make_mpi},
                               {"shm", false, make_intranode}, {"native", false, make_native},
                               {"nccl", true, make_nccl},      {"cuda", true, make_cuda}};

}  // namespace

std::span<const BackendRow> backend_table() { return rows; }

Backends::Backends(const BackendParts& asked_parts) {
  BackendParts parts = asked_parts;
  parts.host = make_host_executor(parts);
  parts.cuda = std::make_shared<CudaBackend>(
      CudaBackend::Parts{.facts = parts.facts, .executor = parts.host, .is_one_host = is_one_host(parts)});
  const auto asked = std::ranges::find(rows, parts.asked, &BackendRow::name);
  const bool asks_for_gpus = asked != std::end(rows) && asked->is_for_gpus;
  if (asks_for_gpus) add(*asked, parts);
  bool is_found = parts.asked.empty() || asks_for_gpus;
  for (const BackendFactory& make : parts.extensions) {
    std::shared_ptr<Backend> backend = make(*parts.facts, *parts.transport);
    if (!backend) continue;
    is_found = is_found || backend->name() == parts.asked;
    if (is_found) all_.push_back(std::move(backend));
  }
  for (const BackendRow& row : rows) {
    is_found = is_found || row.name == parts.asked || parts.facts->size == 1;
    if (is_found && !(asks_for_gpus && &row == &*asked)) add(row, parts);
  }
}

void Backends::add(const BackendRow& row, const BackendParts& parts) {
  if (auto backend = row.make(parts)) all_.push_back(std::move(backend));
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
