// measure.cpp: what plans really do.
// SPDX-License-Identifier: Apache-2.0
#include "plan/measure.hpp"

#include <algorithm>
#include <map>
#include <queue>
#include <tuple>

#include <tutti/error.hpp>

namespace tutti {

namespace {

struct Event {
  double time;
  std::int64_t order;  // among events of the same time, the order in which they came up
  std::uint32_t rank, step;
  bool ready;  // the step may start; otherwise it has ended
  std::int64_t depth;
  friend bool operator>(const Event& a, const Event& b) {
    return std::tie(a.time, a.order) > std::tie(b.time, b.order);
  }
};

struct Rank {
  double sending_until = 0, receiving_until = 0, reducing_until = 0;
  std::vector<std::uint32_t> needs;
  std::vector<std::int64_t> depth;  // per step: messages that had to come before it
  Cost total;
  std::int64_t sent = 0, received = 0;
};

struct Message {
  double there = -1, wanted = -1;  // when the data can arrive, when the receive started
  std::int64_t depth = 0;
  std::uint32_t step = 0;
};

class Simulation {
 public:
  Simulation(std::span<const Plan> plans, std::int64_t element_bytes, const CostModel& model)
      : plans_(plans), element_bytes_(element_bytes), model_(model), ranks_(plans.size()) {}

  Cost run() {
    for (std::uint32_t rank = 0; rank < plans_.size(); ++rank) {
      const auto& steps = plans_[rank].steps;
      ranks_[rank].depth.resize(steps.size());
      for (std::uint32_t i = 0; i < steps.size(); ++i) {
        ranks_[rank].needs.push_back(steps[i].needs);
        if (steps[i].needs == 0) push(0, rank, i, true, 0);
      }
    }
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      event.ready ? start(event) : end(event);
    }
    return total();
  }

 private:
  void push(double time, std::uint32_t rank, std::uint32_t step, bool ready, std::int64_t depth) {
    events_.push({time, order_++, rank, step, ready, depth});
  }

  void start(const Event& event) {
    const Step& step = plans_[event.rank].steps[event.step];
    Rank& rank = ranks_[event.rank];
    const auto bytes = [&](Piece piece) { return piece.count * element_bytes_; };
    double until = event.time;
    switch (step.act) {
      case Act::send: {
        until = std::max(event.time, rank.sending_until) + model_.overhead +
                double(bytes(step.from)) * model_.inside.seconds_per_byte;
        rank.sending_until = until;
        rank.total.bytes_sent += bytes(step.from);
        ++rank.sent;
        Message& message = messages_[{event.rank, std::uint32_t(step.peer), step.tag}];
        message.there = until + model_.inside.latency;
        message.depth = std::max(message.depth, event.depth + 1);
        if (message.wanted >= 0) deliver(message, std::uint32_t(step.peer), bytes(step.from));
        break;
      }
      case Act::recv: {
        rank.total.bytes_received += bytes(step.to);
        ++rank.received;
        Message& message = messages_[{std::uint32_t(step.peer), event.rank, step.tag}];
        message.wanted = event.time;
        message.step = event.step;
        message.depth = std::max(message.depth, event.depth);
        if (message.there >= 0) deliver(message, event.rank, bytes(step.to));
        return;
      }
      case Act::reduce:
        rank.total.bytes_reduced += bytes(step.to);
        until = std::max(event.time, rank.reducing_until) + double(bytes(step.to)) * model_.reduce_seconds_per_byte;
        rank.reducing_until = until;
        break;
      case Act::call: throw InvalidArgument("measure: plans with calls on subgroups are not measured");
      default: break;
    }
    push(until, event.rank, event.step, false, event.depth);
  }

  // The wire has had the data on its way while the sender was busy; the receiver takes one message at a time.
  void deliver(const Message& message, std::uint32_t to, std::int64_t bytes) {
    Rank& rank = ranks_[to];
    const double busy = model_.overhead + double(bytes) * model_.inside.seconds_per_byte;
    const double until = std::max({message.there, message.wanted, rank.receiving_until + busy});
    rank.receiving_until = until;
    push(until, to, message.step, false, message.depth);
  }

  void end(const Event& event) {
    last_ = std::max(last_, event.time);
    deepest_ = std::max(deepest_, event.depth);
    const Plan& plan = plans_[event.rank];
    Rank& rank = ranks_[event.rank];
    for (std::uint32_t i = plan.unlock_begin[event.step]; i < plan.unlock_begin[event.step + 1]; ++i) {
      const std::uint32_t next = plan.unlocks[i];
      rank.depth[next] = std::max(rank.depth[next], event.depth);
      if (--rank.needs[next] == 0) push(event.time, event.rank, next, true, rank.depth[next]);
    }
  }

  [[nodiscard]] Cost total() const {
    Cost cost{.rounds = deepest_, .time = last_};
    for (const Rank& rank : ranks_) {
      cost.messages = std::max({cost.messages, rank.sent, rank.received});
      cost.bytes_sent = std::max(cost.bytes_sent, rank.total.bytes_sent);
      cost.bytes_received = std::max(cost.bytes_received, rank.total.bytes_received);
      cost.bytes_reduced = std::max(cost.bytes_reduced, rank.total.bytes_reduced);
    }
    return cost;
  }

  std::span<const Plan> plans_;
  std::int64_t element_bytes_;
  const CostModel& model_;
  std::vector<Rank> ranks_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, Message> messages_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::int64_t order_ = 0, deepest_ = 0;
  double last_ = 0;
};

}  // namespace

Cost measure(std::span<const Plan> plans, std::int64_t element_bytes, const CostModel& model) {
  return Simulation(plans, element_bytes, model).run();
}

}  // namespace tutti
