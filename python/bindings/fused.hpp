// fused.hpp: one verb on a tree of arrays, in few messages.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "bindings/running.hpp"

namespace tutti::python {

enum class Elements { any, floating };

/// A blocking call on a tree; the result is a tree of new arrays, or of those in `out` where it is not None. Null: the verb, the
/// tree or its elements are not served here, and nothing has happened.
nb::object apply_fused(const std::shared_ptr<Member>& member, const Call& call, nb::handle x, nb::handle out,
                       Duration timeout, Elements elements = Elements::any);

}  // namespace tutti::python
