// conceal.hpp: the secret leaves the environment of the process, and Python's copy of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tutti::python {

/// After the secret has served. With the GIL.
void conceal_secret();

}  // namespace tutti::python
