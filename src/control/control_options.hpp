// control_options.hpp: the times of the control network, and what the system knows of other ranks' processes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include <tutti/clock.hpp>

#include "control/verdicts.hpp"

namespace tutti::control {

enum class Life : std::uint8_t {
  unknown,  // it runs on another machine, or in another process namespace
  running,
  stopped,  // by a signal or a debugger
  ended,
};

struct ControlOptions {
  Duration beat = std::chrono::seconds(1);            // a link without other traffic carries a heartbeat this often
  Duration silence = std::chrono::seconds(5);         // a peer that is silent for so long is checked, and accused
  Duration first_contact = std::chrono::seconds(30);  // … a peer that has never answered yet
  VerdictTimes verdicts{};
  Duration retry = std::chrono::milliseconds(200);  // joins of a group under creation are repeated
  Duration mend =
      std::chrono::milliseconds(50);  // delay before links to ranks that left are replaced: others may leave, too
  // What the system knows of a rank's process; without it, or where it answers `unknown`, silence counts as death.
  std::function<Life(int rank)> life{};
};

}  // namespace tutti::control
