// report_page.hpp: the report as one page that needs nothing else.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "watch/report_data.hpp"
#include "watch/timeline.hpp"

namespace tutti::watch {

std::string to_page(const Timeline& timeline, const ReportData& data);

}  // namespace tutti::watch
