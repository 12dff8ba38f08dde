// explain.hpp: `tutti explain`: which plan, what it costs, and a picture of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/explanation.hpp"
#include "cli/style.hpp"

namespace CLI {
class App;
}

namespace tutti::cli {

void add_explain(CLI::App& tutti);

/// "all_reduce of 1 MiB float32 on 8 ranks, 2 hosts".
std::string headline(const Question& question, const Explanation& answer);
/// What is selected and why, and the table of all that serve.
std::string to_text(const Question& question, const Explanation& answer, const Style& style);

}  // namespace tutti::cli
