// signature.hpp: what the ranks of a call must agree on, drawn from a checked request.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tutti/request.hpp>

#include "backend/block_layout.hpp"

namespace tutti {

/// All but the sequence number. The same on every rank of a right call, whichever views a rank happens to have.
Signature signature_of(const Request& request, const BlockLayout& layout);

}  // namespace tutti
