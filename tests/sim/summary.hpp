// summary.hpp: the results of many seeds, as a table.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "history.hpp"
#include "scenario.hpp"

namespace tutti::sim {

class Summary {
 public:
  void add(const Scenario& scenario, const History& history, bool holds);
  // One row per kind of trouble, and their sum.
  [[nodiscard]] std::string table() const;
  [[nodiscard]] std::int64_t seeds() const;
  [[nodiscard]] std::int64_t calls() const;
  [[nodiscard]] std::int64_t failed() const;
  [[nodiscard]] double virtual_seconds() const { return virtual_seconds_; }

 private:
  struct Row {
    std::int64_t seeds = 0, failed = 0;
    std::array<std::int64_t, outcome_count> calls{};
  };
  [[nodiscard]] Row total() const;

  std::map<std::string, Row, std::less<>> rows_;
  double virtual_seconds_ = 0;
};

}  // namespace tutti::sim
