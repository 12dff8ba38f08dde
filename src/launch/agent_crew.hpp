// agent_crew.hpp: the ranks of a job on several hosts, as tuttirun sees them through its agents.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launch/agent_links.hpp"
#include "launch/crew.hpp"
#include "launch/job_order.hpp"

namespace tutti::launch {

// A host that the job cannot be started on.
class HostUnusable : public UsageError {
 public:
  HostUnusable(std::size_t host, const std::string& sentence) : UsageError(sentence), host_(host) {}
  [[nodiscard]] std::size_t host() const { return host_; }

 private:
  std::size_t host_;  // in the order's list
};

class AgentCrew final : public Crew {
 public:
  explicit AgentCrew(JobOrder order);

  // Starts an agent on every host; each checks its host, and they check that they reach each other. Throws HostUnusable,
  // which names the host. `wait` polls for what it is given until a time; what it throws ends the preparation.
  using Wait = std::function<void(std::vector<pollfd>& watched, TimePoint until)>;
  void prepare(const Wait& wait);
  // After that: on which host each rank runs, by the name that people gave it.
  [[nodiscard]] std::vector<std::string> host_of_rank() const;
  // Rank 0 reads from this descriptor; -1: from nothing.
  void set_input(int descriptor) { input_ = descriptor; }

  void start() override;
  void watch(std::vector<pollfd>& into, Room room) const override;
  [[nodiscard]] TimePoint next_timer() const override { return links_.next_timer(); }
  void serve(CrewListener& listener, Room room) override;
  [[nodiscard]] bool is_gone() const override;

  void tell_ranks(int rank, const std::string& how) override;
  void signal_ranks(int signal) override;
  void signal_all(int signal) override;
  void end(int signal, Duration grace) override;

 private:
  struct HostState {
    std::optional<HostFacts> facts = {};
    std::optional<ReachReport> reach = {};
    bool is_gone = false;
    std::size_t owed = 0;  // bytes of output that were taken, and are yet to be acknowledged
  };

  void prepare_until(const Wait& wait, const std::function<bool()>& is_done);
  void hear_while_preparing(const Frame& frame);
  void choose_network(const Wait& wait);
  void hear(const Frame& frame, CrewListener& listener);
  void lose_host(std::uint32_t host, const std::string& why, CrewListener& listener);
  void close_store_when_unneeded();
  void acknowledge_output();
  void forward_input();
  [[nodiscard]] HostState& state_of(const Frame& frame);
  [[nodiscard]] const std::string& name_of(std::uint32_t host) const { return order_.hosts[host].name; }
  [[nodiscard]] int first_rank_of(std::uint32_t host) const;
  void broadcast(FrameKind kind, std::vector<std::byte> body) { links_.send({.kind = kind, .body = std::move(body)}); }

  JobOrder order_;
  AgentLinks links_;
  std::vector<HostState> hosts_;
  StartOrder start_;
  std::optional<std::vector<std::int64_t>> serving_;
  int input_ = -1;
  bool input_is_taken_ = true;
  bool is_ending_ = false;
  bool is_store_needed_ = true;
};

}  // namespace tutti::launch
