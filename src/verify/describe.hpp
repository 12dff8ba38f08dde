// describe.hpp: the tables of docs/algorithms.md, written by the code they are about.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "plan/select.hpp"

namespace tutti {

/// What each algorithm of each verb costs, as a Markdown table: rounds and bytes for 8 and 13 ranks.
std::string cost_table();
/// What is selected, by ranks and bytes, as a Markdown table.
std::string selection_table(const Table& table);

}  // namespace tutti
