// conceal.hpp: removes the secret from the environment of the process, and from Python's copy of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tutti::python {

/// Called when the secret is no longer needed. With the GIL.
void conceal_secret();

}  // namespace tutti::python
