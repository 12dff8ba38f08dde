// life.hpp: what the system knows of another rank's process: whether it runs, is stopped, or has ended.
// SPDX-License-Identifier: Apache-2.0
//
// A process that gets no processor for seconds is silent, too. So silence is no proof inside a machine: /proc is asked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "control/control.hpp"

namespace tutti {

/// A process that no other one can be taken for: ids are used again, together with the start time they are not.
struct ProcessIdentity {
  std::string machine{};            // since it was booted
  std::uint64_t pid_namespace = 0;  // where the id holds
  std::int64_t pid = 0;
  std::uint64_t started_ticks = 0;

  [[nodiscard]] bool is_known() const { return pid > 0; }
};

/// Of this process; not known where /proc is not to be read.
ProcessIdentity own_identity();
std::string to_text(const ProcessIdentity& identity);
/// Not known for a text that to_text() did not write.
ProcessIdentity identity_from_text(std::string_view text);

/// Life::unknown for processes that are out of sight of `self`.
control::Life life_of(const ProcessIdentity& process, const ProcessIdentity& self);

}  // namespace tutti
