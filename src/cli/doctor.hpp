// doctor.hpp: `tutti doctor`: what this machine has, which backends work, and why the others do not.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace CLI {
class App;
}

namespace tutti::cli {

void add_doctor(CLI::App& tutti);

}  // namespace tutti::cli
