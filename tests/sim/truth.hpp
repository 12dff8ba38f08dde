// truth.hpp: what really went wrong, and which ranks may be named for it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

#include "history.hpp"
#include "scenario.hpp"

namespace tutti::sim {

class Truth {
 public:
  Truth(const Scenario& scenario, const History& history);

  // Ranks with a fault of their own, ends of links with one, ranks that left.
  [[nodiscard]] bool is_suspect(int rank) const { return suspects_.contains(rank); }
  // Whether a rank's own view of the others is impaired: it may believe what is not so.
  [[nodiscard]] bool is_impaired(int rank) const { return impaired_.contains(rank); }
  // Whether what a rank knows of the others is older than the agreement allows for: then it decides for itself, and perhaps
  // otherwise than they do (control.hpp states this one assumption about time).
  [[nodiscard]] bool is_out_of_touch(int rank) const { return out_of_touch_.contains(rank); }
  // Whether a rank is slow, or stopped, itself: it may be the one that its peers wait for, and know of nobody else to name than these.
  [[nodiscard]] bool is_slow(int rank) const { return slow_.contains(rank); }
  // Whether a rank had not made its part of a call by this time, or never.
  [[nodiscard]] bool had_not_called(std::size_t group, std::size_t call, int rank, Duration by) const;
  // Every rank can reach every other one, perhaps over others.
  [[nodiscard]] bool is_connected() const { return connected_; }
  [[nodiscard]] bool deviates(Deviation::Kind kind, std::size_t group) const;
  [[nodiscard]] bool someone_left() const;
  // Whether the rank leaves in the middle of its script.
  [[nodiscard]] bool leaves(int rank) const;
  // Whether that call is a message whose receiver expects another array: it fails alone. Of any call of the group.
  [[nodiscard]] bool is_message_mismatch(std::size_t group, std::size_t call) const;
  [[nodiscard]] bool has_message_mismatch(std::size_t group) const;
  // Whether the rank's part of a call was over without success by this time: a send that timed out was never sent.
  [[nodiscard]] bool had_given_up(std::size_t group, std::size_t call, int rank, Duration by) const;

 private:
  const Scenario& scenario_;
  const History& history_;
  std::set<int> suspects_, impaired_, out_of_touch_, slow_;
  bool connected_ = true;
};

// The ranks, in the group, that a Timeout's text waits for, and who says so in which call.
struct TimeoutText {
  int reporter = -1;
  bool is_message = false;
  std::uint64_t sequence = 0;
  std::vector<int> named{};
};
TimeoutText parse_timeout(const std::string& cause);

}  // namespace tutti::sim
