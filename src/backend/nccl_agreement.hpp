// nccl_agreement.hpp: whether the ranks of a group use NCCL, from what each tells of itself: pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cuda/driver.hpp"
#include "cuda/nccl.hpp"

namespace tutti {

/// What every rank tells at the beginning of a call.
struct NcclRecord {
  std::int32_t version = 0;        // of its library; 0: it has none that can be used
  std::uint32_t has_host_id = 0;   // NCCL_HOSTID is set
  std::uint64_t host_id = 0;       // its digest
  std::uint64_t communicator = 0;  // that it has for this GPU; 0: none
  cuda::Uuid gpu{};
  std::array<char, 160> problem{};  // why it has none, as far as there is room
};

/// The record of this process; without the communicator.
NcclRecord own_nccl_record(const nccl::Found& found, const cuda::Uuid& gpu, std::string_view host_id);

/// Why these ranks cannot use NCCL, or should not: a library is missing or of another version, or ranks share a GPU. Where the group asks for NCCL
/// (`is_asked`), ranks on one GPU may use it if NCCL takes them for ranks of different hosts.
std::optional<std::string> nccl_objection(std::span<const NcclRecord> records, bool is_asked);

/// Whether all have the same communicator, made for these GPUs.
bool have_communicator(std::span<const NcclRecord> records);

}  // namespace tutti
