// signature.hpp: what the ranks of a call must agree on, drawn from a checked request.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <tutti/request.hpp>

#include "backend/block_layout.hpp"

namespace tutti {

/// In Signature::flags: the arrays lie on a GPU. All ranks' do, or none.
inline constexpr std::uint8_t on_gpu_flag = 8;

/// All but the sequence number. The same on every rank of a right call, whichever views a rank happens to have.
Signature signature_of(const Request& request, const BlockLayout& layout);

}  // namespace tutti
