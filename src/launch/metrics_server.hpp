// metrics_server.hpp: the counts of the ranks for Prometheus, on this machine's own address only.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "base/unique_fd.hpp"

namespace tutti::launch {

class MetricsServer {
 public:
  /// Serves what `page` gives at http://127.0.0.1:PORT/metrics, on a thread of its own. 0: a free port. Throws UsageError where the port
  /// is taken.
  MetricsServer(int port, std::function<std::string()> page);
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;
  [[nodiscard]] int port() const { return port_; }

 private:
  void serve();
  void answer(int connection) const;

  std::function<std::string()> page_;
  UniqueFd listener_, stop_;
  int port_ = 0;
  std::thread thread_;
};

}  // namespace tutti::launch
