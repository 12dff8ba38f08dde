// simulate.cpp: runs the programs of all ranks in virtual time.
// SPDX-License-Identifier: Apache-2.0
//
// A rank's core does one *job* after the other, in the order in which they come up: sending, receiving, reducing. A short
// message is sent at once. A long one is announced; when its receive has started, the receiver grants it; then it is sent.
#include "sim/simulate.hpp"

#include <algorithm>
#include <vector>

#include "sim/action_queue.hpp"
#include "sim/cores.hpp"
#include "sim/event_queue.hpp"
#include "sim/messages.hpp"

namespace tutti::sim {

namespace {

struct Rank {
  ActionQueue actions;
  bool at_work = false;  // has a core, or waits for one
  bool entered = false;  // has begun with its plan
  double slowness = 1;
  std::uint32_t left = 0;  // tasks that have not ended
  std::size_t state = 0;   // of its first task
  const Program* program = nullptr;
};

class Simulation {
 public:
  Simulation(const Workload& workload, const Cluster& cluster)
      : workload_(workload),
        cluster_(cluster),
        messages_(workload, cluster, events_),
        cores_(cluster, workload.period),
        ranks_(static_cast<std::size_t>(workload.period)) {
    std::size_t tasks = 0;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      ranks_[i].program = &workload.of(static_cast<int>(i));
      ranks_[i].state = tasks;
      ranks_[i].left = static_cast<std::uint32_t>(ranks_[i].program->size());
      tasks += ranks_[i].left;
    }
    for (const SlowRank& slow : cluster.slow) ranks_[static_cast<std::size_t>(slow.rank)].slowness = slow.factor;
    needs_.reserve(tasks);
    for (const Rank& rank : ranks_) {
      for (std::size_t i = 0; i < rank.program->size(); ++i) needs_.push_back(rank.program->tasks[i].needs);
    }
    depth_.assign(tasks, 0);
  }

  Outcome run() {
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      if (!is_dead(rank)) assign(rank, 0, Action::enter);
    }
    while (!events_.empty()) {
      const Event event = events_.pop();
      now_ = event.time;
      happen(event);
    }
    return outcome();
  }

 private:
  static constexpr std::uint32_t here_bit = 0x80000000u;  // in needs_: the message is here before its receive

  [[nodiscard]] const Task& task_of(std::uint32_t rank, std::uint32_t task) const {
    return ranks_[rank].program->tasks[task];
  }
  [[nodiscard]] bool is_dead(std::uint32_t rank) const { return static_cast<int>(rank) == cluster_.dead; }
  [[nodiscard]] bool is_long(const Task& task) const { return task.bytes > cluster_.eager_bytes_max; }

  // The first call; later ones are tasks.
  void entered(std::uint32_t index) {
    const Program& program = *ranks_[index].program;
    ranks_[index].entered = true;
    if (program.size() == 0) end_rank();
    for (std::uint32_t task = 0; task < program.size(); ++task) {
      if (program.tasks[task].needs == 0) ready(index, task);
    }
  }

  void ready(std::uint32_t rank, std::uint32_t index) {
    const Task& task = task_of(rank, index);
    switch (task.work) {
      case Work::send: assign(rank, index, is_long(task) ? Action::rts : Action::send); break;
      case Work::recv:
        if (needs_[ranks_[rank].state + index] == here_bit) accept(rank, index);
        break;
      case Work::local: assign(rank, index, Action::compute); break;
      case Work::call: assign(rank, index, Action::enter); break;
      case Work::join: complete(rank, index); break;
    }
  }

  void accept(std::uint32_t rank, std::uint32_t index) {
    assign(rank, index, is_long(task_of(rank, index)) ? Action::cts : Action::receive);
  }

  void assign(std::uint32_t index, std::uint32_t task, Action action) {
    Rank& rank = ranks_[index];
    rank.actions.push(task, action);
    if (rank.at_work) return;
    rank.at_work = true;
    if (const auto core = cores_.ask(index, now_)) begin_action(index, core->begin);
  }

  void begin_action(std::uint32_t index, double begin) {
    const Rank& rank = ranks_[index];
    const Assignment next = rank.actions.first();
    const Task& task = rank.program->tasks[next.task];
    const Action action = next.what();
    const double end = begin + seconds_of(action, task, cluster_) * rank.slowness;
    const bool sends = action == Action::send || action == Action::send_after_cts;
    if (sends && !is_dead(messages_.peer_of(index, task)))
      messages_.transmit(index, task, begin, end, depth_[rank.state + next.task] + 1);
    events_.push(end, Happening::action_ended, index, next.task);
  }

  void happen(const Event& event) {
    const std::int64_t bytes = task_of(event.rank, event.task).bytes;
    switch (event.what()) {
      case Happening::action_ended: action_ended(event.rank); break;
      case Happening::at_core: messages_.cross_core(event, bytes); break;
      case Happening::at_card: messages_.enter_host(event, bytes); break;
      case Happening::arrived:
        if (is_long(task_of(event.rank, event.task))) {
          deepen(event);
          assign(event.rank, event.task, Action::receive);
        } else {
          take(event);
        }
        break;
      case Happening::announced: take(event); break;
      case Happening::cts_received: assign(event.rank, event.task, Action::send_after_cts); break;
      case Happening::landed: complete(event.rank, event.task); break;
      case Happening::core_steals:
        if (const auto next = cores_.steal(event.rank, now_)) begin_action(next->rank, next->begin);
        break;
    }
  }

  void deepen(const Event& event) {
    std::uint32_t& depth = depth_[ranks_[event.rank].state + event.task];
    depth = std::max(depth, event.depth);
  }

  // A short message, or the announcement of a long one.
  void take(const Event& event) {
    deepen(event);
    std::uint32_t& needs = needs_[ranks_[event.rank].state + event.task];
    needs |= here_bit;
    if (needs == here_bit && ranks_[event.rank].entered) accept(event.rank, event.task);
  }

  void action_ended(std::uint32_t index) {
    const Assignment done = ranks_[index].actions.pop();
    const Task& task = task_of(index, done.task);
    switch (done.what()) {
      case Action::rts: {
        if (is_dead(messages_.peer_of(index, task))) break;
        const auto receive = messages_.receive_of(index, task);
        events_.push(now_ + messages_.latency(index, task), Happening::announced, receive.rank, receive.task);
        break;
      }
      case Action::cts: {
        const auto send = messages_.send_of(index, task);
        events_.push(now_ + messages_.latency(index, task), Happening::cts_received, send.rank, send.task);
        break;
      }
      case Action::enter:
        if (ranks_[index].entered) {
          complete(index, done.task);
        } else {
          entered(index);
        }
        break;
      case Action::receive: received(index, done.task); break;
      default: complete(index, done.task);
    }
    if (!ranks_[index].actions.empty()) return begin_action(index, now_);
    ranks_[index].at_work = false;
    if (const auto next = cores_.release(index, now_)) return begin_action(next->rank, next->begin);
    if (const auto look = cores_.steals_at(index)) events_.push(*look, Happening::core_steals, index, 0);
  }

  // The core is done with what was there; the last bytes may still be on their way.
  void received(std::uint32_t rank, std::uint32_t index) {
    const Task& task = task_of(rank, index);
    double end = now_;
    if (task.bytes > Network::first_bytes) {
      const double first = cluster_.throughput_of(task.bytes).seconds(Network::first_bytes, task.bytes_since);
      end = std::max(end, messages_.take_last({rank, index}) + first * ranks_[rank].slowness);
      end += messages_.seconds_of_waiting(rank, task);
    }
    if (end > now_) return events_.push(end, Happening::landed, rank, index);
    complete(rank, index);
  }

  void complete(std::uint32_t index, std::uint32_t task) {
    Rank& rank = ranks_[index];
    deepest_ = std::max(deepest_, depth_[rank.state + task]);
    // Messages are counted anew in each call.
    const std::uint32_t depth = rank.program->tasks[task].work == Work::call ? 0 : depth_[rank.state + task];
    for (const std::uint32_t next : rank.program->unlocked_by(task)) {
      depth_[rank.state + next] = std::max(depth_[rank.state + next], depth);
      const std::uint32_t needs = --needs_[rank.state + next];
      if ((needs & ~here_bit) == 0) ready(index, next);
    }
    if (--rank.left == 0) end_rank();
  }

  void end_rank() {
    ++ended_;
    last_end_ = std::max(last_end_, now_);
  }

  [[nodiscard]] Outcome outcome() const {
    const Traffic traffic = traffic_of(workload_);
    return {.seconds = last_end_ / workload_.calls,
            .rounds = deepest_,
            .messages = traffic.messages / workload_.calls,
            .rank_messages = traffic.rank_messages / workload_.calls,
            .rank_bytes = traffic.rank_bytes / workload_.calls,
            .ended = ended_ * (workload_.ranks / workload_.period)};
  }

  const Workload& workload_;
  const Cluster& cluster_;
  EventQueue events_;
  Messages messages_;
  Cores cores_;
  std::vector<Rank> ranks_;
  std::vector<std::uint32_t> needs_, depth_;  // per rank and task
  double now_ = 0, last_end_ = 0;
  std::uint32_t deepest_ = 0;
  int ended_ = 0;
};

}  // namespace

Outcome simulate(const Workload& workload, const Cluster& cluster) { return Simulation(workload, cluster).run(); }

}  // namespace tutti::sim
