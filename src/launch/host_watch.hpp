// host_watch.hpp: tries again and again whether hosts that a job was started without can be reached by now.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include <tutti/clock.hpp>

namespace tutti::launch {

// One remote shell at a time, which does nothing there. All signals must be blocked.
class HostWatch {
 public:
  HostWatch(std::vector<std::string> hosts, std::vector<std::string> shell);
  HostWatch(const HostWatch&) = delete;
  HostWatch& operator=(const HostWatch&) = delete;
  ~HostWatch();

  [[nodiscard]] TimePoint next_timer() const { return hosts_.empty() ? TimePoint::max() : next_; }
  // A host that answered; "" if none has since. Never waits.
  std::string serve(TimePoint now);

 private:
  void try_next(TimePoint now);

  std::vector<std::string> hosts_, shell_;
  std::size_t at_ = 0;
  pid_t process_ = -1;
  TimePoint next_{};
};

}  // namespace tutti::launch
