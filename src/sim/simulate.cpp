// simulate.cpp: runs the programs of all ranks in virtual time.
// SPDX-License-Identifier: Apache-2.0
//
// A rank's core does one *job* after the other, in the order in which they come up: sending, receiving, reducing. A short
// message is sent at once. A long one is announced; when its receive has started, the receiver grants it; then it is sent.
#include "sim/simulate.hpp"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "sim/cores.hpp"
#include "sim/event_queue.hpp"
#include "sim/network.hpp"

namespace tutti::sim {

namespace {

enum class Job : std::uint8_t { enter, send, announce, grant, send_granted, receive, compute };

struct Assignment {
  std::uint32_t task : 28;
  std::uint32_t job : 4;
};

struct Rank {
  std::vector<Assignment> jobs;  // a queue, from head on
  std::size_t head = 0;
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
        period_(static_cast<std::uint32_t>(workload.period)),
        network_(cluster, (workload.period + cluster.ranks_per_host - 1) / cluster.ranks_per_host),
        cores_(cluster, workload.period),
        ranks_(period_) {
    std::size_t tasks = 0;
    for (std::uint32_t i = 0; i < period_; ++i) {
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
    for (std::uint32_t rank = 0; rank < period_; ++rank) {
      if (!is_dead(rank)) assign(rank, 0, Job::enter);
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
  // The simulated rank that stands for the peer, and whether the peer is on the same host.
  [[nodiscard]] std::uint32_t peer_of(std::uint32_t rank, const Task& task) const {
    return static_cast<std::uint32_t>((static_cast<int>(rank) + task.shift) % workload_.ranks) % period_;
  }
  [[nodiscard]] bool same_host(std::uint32_t rank, const Task& task) const {
    const int real = static_cast<int>(rank);
    return cluster_.host_of(real) == cluster_.host_of((real + task.shift) % workload_.ranks);
  }
  [[nodiscard]] std::int32_t shift_back(const Task& task) const { return workload_.ranks - task.shift; }

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
      case Work::send: assign(rank, index, is_long(task) ? Job::announce : Job::send); break;
      case Work::recv:
        if (needs_[ranks_[rank].state + index] == here_bit) accept(rank, index);
        break;
      case Work::local: assign(rank, index, Job::compute); break;
      case Work::join: complete(rank, index); break;
    }
  }

  void accept(std::uint32_t rank, std::uint32_t index) {
    assign(rank, index, is_long(task_of(rank, index)) ? Job::grant : Job::receive);
  }

  void assign(std::uint32_t index, std::uint32_t task, Job job) {
    Rank& rank = ranks_[index];
    if (rank.head == rank.jobs.size()) {
      rank.jobs.clear();
      rank.head = 0;
    }
    rank.jobs.push_back({.task = task & 0xfffffffu, .job = static_cast<std::uint32_t>(job) & 0xfu});
    if (rank.at_work) return;
    rank.at_work = true;
    if (const auto core = cores_.ask(index, now_)) begin_job(index, core->begin);
  }

  void begin_job(std::uint32_t index, double begin) {
    const Rank& rank = ranks_[index];
    const Assignment next = rank.jobs[rank.head];
    const Task& task = rank.program->tasks[next.task];
    const Job job = static_cast<Job>(next.job);
    double seconds = cluster_.speed.overhead;
    if (job == Job::enter) {
      seconds = cluster_.call;
    } else if (job == Job::compute) {
      seconds = cluster_.copy.seconds(task.bytes, workload_.bytes) +
                cluster_.reduce.seconds(task.reduced_bytes, workload_.bytes);
    } else if (job != Job::announce && job != Job::grant) {
      seconds += cluster_.inside.seconds(task.bytes, workload_.bytes);
    }
    const double end = begin + seconds * rank.slowness;
    if (job == Job::send || job == Job::send_granted) transmit(index, next.task, begin, end);
    events_.push(end, Happening::job_ended, index, next.task);
  }

  // The core of `rank` hands the bytes over from `begin` to `end`.
  void transmit(std::uint32_t rank, std::uint32_t index, double begin, double end) {
    const Task& task = task_of(rank, index);
    const std::uint32_t peer = peer_of(rank, task);
    if (is_dead(peer)) return;
    const std::uint32_t receive = ranks_[peer].program->recvs.task(shift_back(task), task.tag);
    const std::uint32_t depth = depth_[ranks_[rank].state + index] + 1;
    const bool short_one = task.bytes <= Network::first_bytes;
    const double first =
        short_one ? end
                  : begin + (end - begin) * static_cast<double>(Network::first_bytes) / static_cast<double>(task.bytes);
    if (same_host(rank, task)) {
      if (!short_one) last_bytes_[key(peer, receive)] = end + cluster_.speed.inside.latency;
      events_.push(std::max(begin, first + cluster_.speed.inside.latency), Happening::arrived, peer, receive, depth);
      return;
    }
    const double latency = cluster_.speed.between.latency;
    const auto out = network_.leave(cluster_.host_of(static_cast<int>(rank)), task.bytes, first);
    if (!short_one) last_bytes_[key(peer, receive)] = std::max(out.end, end) + latency;
    if (network_.has_core()) {
      events_.push(out.begin, Happening::at_core, peer, receive, depth);
    } else {
      events_.push(out.begin + latency, Happening::at_card, peer, receive, depth);
    }
  }

  void happen(const Event& event) {
    const std::int64_t bytes = task_of(event.rank, event.task).bytes;
    switch (event.what()) {
      case Happening::job_ended: job_ended(event.rank); break;
      case Happening::at_core: {
        const auto through = network_.cross_core(bytes, now_);
        const double latency = cluster_.speed.between.latency;
        delay_last(event, through.end + latency);
        events_.push(through.begin + latency, Happening::at_card, event.rank, event.task, event.depth);
        break;
      }
      case Happening::at_card: {
        const auto in = network_.enter(cluster_.host_of(static_cast<int>(event.rank)), bytes, now_);
        delay_last(event, in.end);
        const std::int64_t first = std::min(bytes, Network::first_bytes);
        events_.push(in.begin + static_cast<double>(first) * cluster_.speed.between.seconds_per_byte,
                     Happening::arrived, event.rank, event.task, event.depth);
        break;
      }
      case Happening::arrived:
        if (is_long(task_of(event.rank, event.task))) {
          deepen(event);
          assign(event.rank, event.task, Job::receive);
        } else {
          take(event);
        }
        break;
      case Happening::announced: take(event); break;
      case Happening::granted: assign(event.rank, event.task, Job::send_granted); break;
      case Happening::landed: complete(event.rank, event.task); break;
      case Happening::core_idle:
        if (const auto next = cores_.take_over(event.rank, now_)) begin_job(next->rank, next->begin);
        break;
    }
  }

  void deepen(const Event& event) {
    std::uint32_t& depth = depth_[ranks_[event.rank].state + event.task];
    depth = std::max(depth, event.depth);
  }
  void delay_last(const Event& event, double until) {
    if (const auto last = last_bytes_.find(key(event.rank, event.task)); last != last_bytes_.end())
      last->second = std::max(last->second, until);
  }
  static std::uint64_t key(std::uint32_t rank, std::uint32_t task) { return std::uint64_t{rank} << 32 | task; }

  // A short message, or the announcement of a long one.
  void take(const Event& event) {
    deepen(event);
    std::uint32_t& needs = needs_[ranks_[event.rank].state + event.task];
    needs |= here_bit;
    if (needs == here_bit && ranks_[event.rank].entered) accept(event.rank, event.task);
  }

  void job_ended(std::uint32_t index) {
    const Assignment done = ranks_[index].jobs[ranks_[index].head++];
    const Task& task = task_of(index, done.task);
    switch (static_cast<Job>(done.job)) {
      case Job::announce: {
        const std::uint32_t peer = peer_of(index, task);
        if (is_dead(peer)) break;
        events_.push(now_ + latency(index, task), Happening::announced, peer,
                     ranks_[peer].program->recvs.task(shift_back(task), task.tag));
        break;
      }
      case Job::grant: {
        const std::uint32_t peer = peer_of(index, task);
        events_.push(now_ + latency(index, task), Happening::granted, peer,
                     ranks_[peer].program->sends.task(shift_back(task), task.tag));
        break;
      }
      case Job::enter: entered(index); break;
      case Job::receive: received(index, done.task); break;
      default: complete(index, done.task);
    }
    if (ranks_[index].head < ranks_[index].jobs.size()) return begin_job(index, now_);
    ranks_[index].at_work = false;
    if (const auto next = cores_.release(index, now_)) return begin_job(next->rank, next->begin);
    if (const auto idle = cores_.idle_from(index)) events_.push(*idle, Happening::core_idle, index, 0);
  }

  [[nodiscard]] double latency(std::uint32_t rank, const Task& task) const {
    return std::max(0.0, network_.link(same_host(rank, task)).latency);
  }

  // The core is done with what was there; the last bytes may still be on their way.
  void received(std::uint32_t rank, std::uint32_t index) {
    if (task_of(rank, index).bytes > Network::first_bytes) {
      const auto last = last_bytes_.find(key(rank, index));
      const double end =
          last->second + cluster_.inside.seconds(Network::first_bytes, workload_.bytes) * ranks_[rank].slowness;
      last_bytes_.erase(last);
      if (end > now_) return events_.push(end, Happening::landed, rank, index);
    }
    complete(rank, index);
  }

  void complete(std::uint32_t index, std::uint32_t task) {
    Rank& rank = ranks_[index];
    const std::uint32_t depth = depth_[rank.state + task];
    deepest_ = std::max(deepest_, depth);
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
    return {.seconds = last_end_,
            .rounds = deepest_,
            .messages = traffic.messages,
            .rank_messages = traffic.rank_messages,
            .rank_bytes = traffic.rank_bytes,
            .ended = ended_ * (workload_.ranks / workload_.period)};
  }

  const Workload& workload_;
  const Cluster& cluster_;
  std::uint32_t period_;
  Network network_;
  Cores cores_;
  std::vector<Rank> ranks_;
  std::vector<std::uint32_t> needs_, depth_;  // per rank and task
  std::unordered_map<std::uint64_t, double> last_bytes_;
  EventQueue events_;
  double now_ = 0, last_end_ = 0;
  std::uint32_t deepest_ = 0;
  int ended_ = 0;
};

}  // namespace

Outcome simulate(const Workload& workload, const Cluster& cluster) { return Simulation(workload, cluster).run(); }

}  // namespace tutti::sim
