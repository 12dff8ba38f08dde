// table_file.hpp: the table that TUTTI_TABLE names, as rank 0 would read it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/environment.hpp"
#include "plan/select.hpp"

namespace tutti::cli {

/// The built-in cost model where TUTTI_TABLE is not set. InvalidArgument names the file and what is wrong with it.
Table read_table(const Environment& environment);

}  // namespace tutti::cli
