// command.hpp: `tutti sim`.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace CLI {
class App;
}

namespace tutti::sim {

void add_command(CLI::App& tutti);

}  // namespace tutti::sim
