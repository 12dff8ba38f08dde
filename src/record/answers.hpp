// answers.hpp: a rank's answers to those who ask where its program is.
// SPDX-License-Identifier: Apache-2.0
//
// Thread rule: any thread.
#pragma once

#include <mutex>
#include <string>
#include <string_view>

#include "record/layout.hpp"

namespace tutti::record {

class Answers {
 public:
  explicit Answers(Fixed& fixed) : fixed_(fixed) {}

  /// Sleeps until a tool asks, or stop(). False: there is no more to answer.
  bool wait();
  void give(std::string_view stack);
  void stop();
  /// Asks as a tool would: for this rank's own reports of stalls.
  void ask();
  /// The stack as it was answered last; empty: never.
  [[nodiscard]] std::string latest() const;

 private:
  Fixed& fixed_;
  std::mutex mutex_;
  bool stops_ = false;  // guarded by mutex_
};

}  // namespace tutti::record
