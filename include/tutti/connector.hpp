// connector.hpp: who am I, who else is there, and where do we meet: what rendezvous gives to a rank.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/backend.hpp>
#include <tutti/clock.hpp>
#include <tutti/store.hpp>

namespace tutti {

/// A rank's place in its job.
struct Place {
  int rank = 0;
  int size = 1;
  int local_rank = 0;  // among the ranks of this node
  int local_size = 1;
  int node_rank = 0;
  int node_count = 1;
  int root_rank = 0;  // the rank that hands out tables and ids
  std::string host;   // as people call it
};

/// How init() finds the others. Empty fields come from the launcher's environment.
struct InitOptions {
  std::string backend = "auto";
  std::string init_method;  // "env://", "tcp://host:port", "file:///path"; empty: detect the launcher
  int rank = -1;
  int size = -1;
  Duration timeout = std::chrono::seconds(300);  // for meeting, and the default deadline of every call
  std::vector<BackendFactory>
      backends{};  // of the program's own, asked before the built-in ones; the same on all ranks
};

/// The link to the others before there are groups: small, slow, and enough to build everything else.
class Connector {
 public:
  virtual ~Connector() = default;
  [[nodiscard]] virtual const Place& place() const = 0;
  /// Which launcher was recognised, and where the meeting point and the secret came from, in words.
  [[nodiscard]] virtual std::string describe() const = 0;
  /// The host at which the ranks met, as an address; empty where there was none. Tells which network interface to use.
  [[nodiscard]] virtual std::string meeting_host() const { return {}; }
  /// The store that the whole job shares; keys of the connector itself live under a prefix of their own.
  [[nodiscard]] virtual std::shared_ptr<Store> store() const = 0;
  /// The per-job secret, as 32 bytes.
  [[nodiscard]] virtual std::string_view secret() const = 0;

  virtual void barrier(TimePoint deadline) = 0;
  /// The root's value, on every rank.
  virtual std::string broadcast(std::string_view value, int root, TimePoint deadline) = 0;
  /// Every rank's value, on every rank, in rank order.
  virtual std::vector<std::string> exchange(std::string_view value, TimePoint deadline) = 0;
};

/// Finds the others as `options` and this process's environment say. Alone, a group of one without any socket.
std::unique_ptr<Connector> connect(const InitOptions& options = {});

}  // namespace tutti
