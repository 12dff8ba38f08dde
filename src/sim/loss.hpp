// loss.hpp: a rank is dead: how long until every survivor knows, by the rules of the control network.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "sim/cluster.hpp"

namespace tutti::sim {

enum class Death : std::uint8_t {
  seen,    // its process ended: the kernel closes its connections, and the ranks linked to it notice
  silent,  // its host is gone: the ranks linked to it notice its silence
};

/// Seconds from the death on.
struct Spread {
  double noticed = 0;   // by the first linked rank
  double decided = 0;   // by the lowest living rank
  double everyone = 0;  // the last survivor has heard the decision, and its call has failed
};

Spread spread_of_loss(const Cluster& cluster, Death death);

}  // namespace tutti::sim
