// report.hpp: the facts of `tutti doctor` as text and as JSON.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/facts.hpp"
#include "cli/style.hpp"

namespace tutti::cli {

/// One screen: sections, each fact on a line with a mark: ✓ works, · for your information, ! could be better, ✗ init
/// would fail.
std::string to_text(const Facts& facts, const Style& style);
/// One JSON object; the names are those of facts.hpp.
std::string to_json(const Facts& facts);

/// What would make init fail here; empty if nothing.
std::vector<std::string> problems(const Facts& facts);

}  // namespace tutti::cli
