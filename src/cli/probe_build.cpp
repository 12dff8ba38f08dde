// probe_build.cpp: how this program was built, and which of its vector code this processor runs.
// SPDX-License-Identifier: Apache-2.0
#include <hwy/targets.h>

#include "cli/probes.hpp"

namespace tutti::cli {

BuildFacts probe_build() {
  BuildFacts facts{.version = TUTTI_VERSION,
                   .type = TUTTI_BUILD_TYPE,
                   .compiler = TUTTI_COMPILER,
                   .flags = TUTTI_FLAGS,
                   .vector_target = "",
                   .vector_targets = {}};
  // Highway numbers its targets from the best, bit 0, down. The kernels are compiled with the same HWY_TARGETS.
  const std::int64_t here = hwy::SupportedTargets();
  for (int bit = 0; bit < 63; ++bit) {
    const std::int64_t target = std::int64_t{1} << bit;
    if ((HWY_TARGETS & target) == 0) continue;
    facts.vector_targets.emplace_back(hwy::TargetName(target));
    if (facts.vector_target.empty() && (here & target) != 0) facts.vector_target = facts.vector_targets.back();
  }
  return facts;
}

}  // namespace tutti::cli
