// agent_links.hpp: the agents that a node of the tree has started, and the frames between it and them.
// SPDX-License-Identifier: Apache-2.0
//
// tuttirun and every agent have one. A link is a remote shell with three pipes. When a link breaks, or nothing is heard
// of it for too long, all hosts behind it are lost: `host_lost` frames say so, as if they came from those hosts.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <deque>
#include <set>
#include <string>
#include <vector>

#include <tutti/clock.hpp>

#include "launch/agent_frame.hpp"
#include "launch/job_order.hpp"
#include "launch/spawn.hpp"

namespace tutti::launch {

// How often a link that is silent otherwise carries a beat.
inline constexpr Duration beat_interval = std::chrono::seconds(1);

class AgentLinks {
 public:
  // `order` must outlive this. `node` is this one's number in the tree.
  AgentLinks(const JobOrder& order, int node) : order_(order), tree_(order.tree()), node_(node) {}
  AgentLinks(const AgentLinks&) = delete;
  AgentLinks& operator=(const AgentLinks&) = delete;
  ~AgentLinks();  // agents that are still there learn that this node is gone

  // Starts the remote shells of this node's children.
  void start();
  void watch(std::vector<pollfd>& into) const;
  [[nodiscard]] TimePoint next_timer() const;
  // Reads what has come, sends beats, finds links that are silent.
  void serve();
  // Frames from the hosts below, host_lost included, in order.
  std::optional<Frame> next();

  // For a host below, or for all of them.
  void send(const Frame& frame);
  void flush_until(TimePoint deadline);
  [[nodiscard]] bool is_empty() const { return links_.empty(); }
  // Ends remote shells that have not ended by themselves.
  void kill();

 private:
  struct Link {
    int node = 0;
    pid_t process = -1;
    FramePipe pipe = {};
    UniqueFd errors = {};
    std::string error_text = {};
    TimePoint started_at{};
    bool is_known = false;  // its banner has come, and it has its order
  };

  void start_one(int child);
  [[nodiscard]] std::vector<std::string> command_for(const std::string& host) const;
  // Empty, or why the link is of no more use.
  std::string serve_link(Link& link, TimePoint now);
  std::string greet(Link& link);
  void take(Frame frame);
  void lose(Link& link, const std::string& why);
  [[nodiscard]] std::string explain(Link& link);
  static void read_errors(Link& link);
  static int reap(Link& link);
  [[nodiscard]] std::string name_of(int node) const;

  const JobOrder& order_;
  HostTree tree_;
  int node_;
  std::deque<Link> links_;
  std::deque<Frame> frames_;
  std::set<std::uint32_t> gone_;  // hosts of which nothing more is expected
};

}  // namespace tutti::launch
