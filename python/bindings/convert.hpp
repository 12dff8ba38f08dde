// convert.hpp: small Python values as the core has them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tutti/clock.hpp>
#include <tutti/op.hpp>

#include "bindings/bind.hpp"

namespace tutti::python {

/// A name, or what premul() gave.
Op op_from(nb::handle value);

/// Seconds, a timedelta, or None for the group's own.
Duration timeout_from(nb::handle value);

}  // namespace tutti::python
