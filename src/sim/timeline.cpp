// timeline.cpp: when each message of a plan is under way.
// SPDX-License-Identifier: Apache-2.0
#include "sim/timeline.hpp"

#include <algorithm>
#include <map>
#include <queue>
#include <tuple>

#include <tutti/error.hpp>

#include "sim/program.hpp"

namespace tutti::sim {

namespace {

struct Moment {
  double time;
  std::int64_t order;  // among events of the same time, the order in which they came up
  int rank;
  std::uint32_t task;
  bool ready;          // the task may start; otherwise it has ended
  std::int64_t depth;  // messages that had to come before
  friend bool operator>(const Moment& a, const Moment& b) {
    return std::tie(a.time, a.order) > std::tie(b.time, b.order);
  }
};

// One direction of something that carries one message at a time.
struct LinkDirection {
  double until = 0;
};

struct Mail {
  int message = -1;        // index in the timeline, once it was sent
  double there = -1;       // when its last byte can be there
  double wanted = -1;      // when its receive started
  std::uint32_t task = 0;  // that receive
  std::int64_t depth = 0;
};

class Rehearsal {
 public:
  Rehearsal(const Spec& spec, std::int64_t element_bytes, const Table& table) : model_(table.model) {
    timeline_.ranks = spec.size;
    timeline_.node_of = spec.node_of;
    const auto ranks = static_cast<std::size_t>(spec.size);
    sending_.resize(ranks), receiving_.resize(ranks), reducing_.resize(ranks);
    leaving_.resize(ranks), entering_.resize(ranks);  // by host; there are at most as many
    Spec own = spec;
    for (own.rank = 0; own.rank < own.size; ++own.rank) {
      programs_.push_back(compile(make_plan(own), element_bytes, table));
      std::vector<std::uint32_t>& needs = needs_.emplace_back();
      for (std::uint32_t i = 0; i < programs_.back().size(); ++i) needs.push_back(programs_.back().tasks[i].needs);
      depths_.emplace_back(programs_.back().size(), 0);
    }
  }

  Timeline run() {
    for (int rank = 0; rank < timeline_.ranks; ++rank) {
      for (std::uint32_t i = 0; i < program(rank).size(); ++i) {
        if (program(rank).tasks[i].needs == 0) push(0, rank, i, true, 0);
      }
    }
    while (!events_.empty()) {
      const Moment event = events_.top();
      events_.pop();
      event.ready ? start(event) : end(event);
    }
    assign_slots();
    return std::move(timeline_);
  }

 private:
  [[nodiscard]] const Program& program(int rank) const { return programs_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] int peer_of(int rank, const Task& task) const {
    const int shifted = (rank + task.shift) % timeline_.ranks;
    return shifted < 0 ? shifted + timeline_.ranks : shifted;
  }
  [[nodiscard]] std::size_t host_of(int rank) const {
    return timeline_.node_of.empty() ? 0 : static_cast<std::size_t>(timeline_.node_of[static_cast<std::size_t>(rank)]);
  }

  void push(double time, int rank, std::uint32_t task, bool ready, std::int64_t depth) {
    events_.push({time, order_++, rank, task, ready, depth});
  }

  void start(const Moment& event) {
    const Task& task = program(event.rank).tasks[event.task];
    switch (task.work) {
      case Work::send: return send(event, task);
      case Work::recv: {
        Mail& mail = mail_[{peer_of(event.rank, task), event.rank, task.tag}];
        mail.wanted = event.time;
        mail.task = event.task;
        mail.depth = std::max(mail.depth, event.depth);
        if (mail.message >= 0) deliver(mail);
        return;
      }
      case Work::local: return compute(event, task);
      case Work::call:
      case Work::join: return push(event.time, event.rank, event.task, false, event.depth);
    }
  }

  void send(const Moment& event, const Task& task) {
    const int to = peer_of(event.rank, task);
    const bool between = host_of(event.rank) != host_of(to);
    const CostModel::Link& link = between ? model_.between : model_.inside;
    LinkDirection& own = sending_[static_cast<std::size_t>(event.rank)];
    const double begin = std::max(event.time, own.until);
    const double moving = static_cast<double>(task.bytes) * link.seconds_per_byte;
    double until = begin + model_.overhead + moving;
    if (between) {
      LinkDirection& shared = leaving_[host_of(event.rank)];
      until = std::max(until, shared.until + moving);
      shared.until = until;
    }
    own.until = until;
    Mail& mail = mail_[{event.rank, to, task.tag}];
    mail.there = until + link.latency;
    mail.depth = std::max(mail.depth, event.depth + 1);
    mail.message = static_cast<int>(timeline_.messages.size());
    timeline_.messages.push_back(
        {.from = event.rank, .to = to, .bytes = task.bytes, .begin = begin, .between = between});
    if (mail.wanted >= 0) deliver(mail);
    push(until, event.rank, event.task, false, event.depth);
  }

  // The wire has had the data on its way while the sender was busy; the receiver takes one message at a time.
  void deliver(const Mail& mail) {
    Message& message = timeline_.messages[static_cast<std::size_t>(mail.message)];
    const CostModel::Link& link = message.between ? model_.between : model_.inside;
    const double moving = static_cast<double>(message.bytes) * link.seconds_per_byte;
    LinkDirection& own = receiving_[static_cast<std::size_t>(message.to)];
    double until = std::max({mail.there, mail.wanted, own.until + model_.overhead + moving});
    if (message.between) {
      LinkDirection& shared = entering_[host_of(message.to)];
      until = std::max(until, shared.until + moving);
      shared.until = until;
    }
    own.until = until;
    message.end = until;
    const Program& receiver = program(message.to);
    for (const std::uint32_t next : receiver.unlocked_by(mail.task)) {
      message.reduced = message.reduced || receiver.tasks[next].reduced_bytes > 0;
    }
    push(until, message.to, mail.task, false, mail.depth);
  }

  void compute(const Moment& event, const Task& task) {
    LinkDirection& own = reducing_[static_cast<std::size_t>(event.rank)];
    const double begin = std::max(event.time, own.until);
    const double until = begin + static_cast<double>(task.reduced_bytes) * model_.reduce_seconds_per_byte;
    if (task.reduced_bytes > 0) {
      own.until = until;
      timeline_.reductions.push_back({.rank = event.rank, .bytes = task.reduced_bytes, .begin = begin, .end = until});
    }
    push(task.reduced_bytes > 0 ? until : event.time, event.rank, event.task, false, event.depth);
  }

  void end(const Moment& event) {
    timeline_.seconds = std::max(timeline_.seconds, event.time);
    timeline_.rounds = std::max(timeline_.rounds, event.depth);
    const auto rank = static_cast<std::size_t>(event.rank);
    for (const std::uint32_t next : program(event.rank).unlocked_by(event.task)) {
      depths_[rank][next] = std::max(depths_[rank][next], event.depth);
      if (--needs_[rank][next] == 0) push(event.time, event.rank, next, true, depths_[rank][next]);
    }
  }

  // A message comes after all that had arrived at its sender by then, after what its sender had sent before, and after what
  // its receiver had received before.
  void assign_slots() {
    std::stable_sort(timeline_.messages.begin(), timeline_.messages.end(),
                     [](const Message& a, const Message& b) { return a.begin < b.begin; });
    struct Done {
      double end;
      int slot;
    };
    std::vector<std::vector<Done>> arrived(static_cast<std::size_t>(timeline_.ranks));
    std::vector<int> sent(arrived.size(), 0), received(arrived.size(), 0);
    for (Message& message : timeline_.messages) {
      const auto from = static_cast<std::size_t>(message.from), to = static_cast<std::size_t>(message.to);
      message.slot = std::max(sent[from], received[to]);
      for (const Done& done : arrived[from]) {
        if (done.end <= message.begin) message.slot = std::max(message.slot, done.slot + 1);
      }
      sent[from] = received[to] = message.slot + 1;
      arrived[to].push_back({message.end, message.slot});
      timeline_.slots = std::max(timeline_.slots, message.slot + 1);
    }
  }

  const CostModel& model_;
  Timeline timeline_;
  std::vector<Program> programs_;
  std::vector<std::vector<std::uint32_t>> needs_;
  std::vector<std::vector<std::int64_t>> depths_;  // per task: messages that had to come before it
  std::vector<LinkDirection> sending_, receiving_, reducing_, leaving_, entering_;
  std::map<std::tuple<int, int, std::uint32_t>, Mail> mail_;
  std::priority_queue<Moment, std::vector<Moment>, std::greater<>> events_;
  std::int64_t order_ = 0;
};

}  // namespace

Timeline rehearse(const Spec& spec, std::int64_t element_bytes, const Table& table) {
  return Rehearsal(spec, element_bytes, table).run();
}

}  // namespace tutti::sim
