// size_exchange.hpp: the phase before a call whose sizes a rank cannot know by itself.
// SPDX-License-Identifier: Apache-2.0
//
// broadcast and scatter: the root tells dtype, shape and sizes. all_gather and gather, uneven: everyone tells its size along
// the axis. all_to_all, uneven: everyone tells each peer how much it will get.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <tutti/backend.hpp>

#include "engine/executor.hpp"

namespace tutti {

class SizeExchange {
 public:
  /// `facts` outlive the exchange.
  SizeExchange(const GroupFacts& facts, Executor& executor, const Request& request);

  /// As of a PreparedCall.
  bool start(const Request& request, const Signature& signature);
  [[nodiscard]] PreparedCall& call() const { return *call_; }
  /// Once it is over: writes what was learned into the request, and makes the output if it has none. Mismatch if the request says
  /// something else.
  void take_sizes(Request& request) const;

 private:
  [[nodiscard]] bool root_tells() const { return root_gives(verb_); }
  void fill_header(const Request& request);
  void take_from_root(Request& request) const;
  void compare(std::span<const std::int64_t> expected) const;

  const GroupFacts& facts_;
  Verb verb_;
  std::vector<std::int64_t> sent_, received_;
  std::unique_ptr<PreparedCall> call_;
};

}  // namespace tutti
