// command.hpp: `tutti bench`, and the rank it starts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace CLI {
class App;
}

namespace tutti::bench {

void add_command(CLI::App& tutti);

}  // namespace tutti::bench
