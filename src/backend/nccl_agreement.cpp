// nccl_agreement.cpp: whether the ranks of a group use NCCL, from what each tells of itself.
// SPDX-License-Identifier: Apache-2.0
#include "backend/nccl_agreement.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.hpp"

namespace tutti {
namespace {

std::string version_of(const NcclRecord& record) { return nccl::version_text(record.version); }

/// Two ranks for which NCCL would find that they share a GPU.
std::optional<std::string> shared_gpu(std::span<const NcclRecord> records, bool is_asked) {
  for (std::size_t i = 0; i < records.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (records[i].gpu != records[j].gpu) continue;
      const bool look_apart =
          records[i].has_host_id != 0 && records[j].has_host_id != 0 && records[i].host_id != records[j].host_id;
      if (is_asked && look_apart) continue;
      return fmt::format("ranks {} and {} share a GPU, which NCCL does only where each has an NCCL_HOSTID of its own",
                         j, i);
    }
  }
  return std::nullopt;
}

}  // namespace

NcclRecord own_nccl_record(const nccl::Found& found, const cuda::Uuid& gpu, std::string_view host_id) {
  NcclRecord record{.gpu = gpu};
  if (found.functions != nullptr) record.version = found.version;
  record.has_host_id = host_id.empty() ? 0 : 1;
  record.host_id = Hash().add(host_id).value();
  const std::size_t length = std::min(found.problem.size(), record.problem.size() - 1);
  std::copy_n(found.problem.begin(), length, record.problem.begin());
  return record;
}

std::optional<std::string> nccl_objection(std::span<const NcclRecord> records, bool is_asked) {
  for (std::size_t rank = 0; rank < records.size(); ++rank) {
    if (records[rank].version == 0) return fmt::format("rank {}: {}", rank, records[rank].problem.data());
    if (records[rank].version != records[0].version)
      return fmt::format("rank 0 has NCCL {}, rank {} NCCL {}", version_of(records[0]), rank,
                         version_of(records[rank]));
  }
  return shared_gpu(records, is_asked);
}

bool have_communicator(std::span<const NcclRecord> records) {
  return std::ranges::all_of(records, [&](const NcclRecord& record) {
    return record.communicator != 0 && record.communicator == records[0].communicator;
  });
}

}  // namespace tutti
