// prepared.hpp: a call that is checked and laid out once, and started as often as wanted.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include <tutti/clock.hpp>
#include <tutti/request.hpp>
#include <tutti/work.hpp>

namespace tutti {

class CachedCall;
class GroupCore;

/// What Group::prepare gives back, as MPI's persistent collectives are. Move-only. To prepare is local; each start() is a call of the
/// group like any other, in the same order on every rank, where the others may make it with or without preparing it. The arrays must stay
/// alive and untouched while it is under way; the destructor waits as that of a Work does.
class [[nodiscard]] Prepared {
 public:
  Prepared() = default;
  /// Made by Group::prepare.
  struct Parts {
    std::shared_ptr<GroupCore> group{};
    std::shared_ptr<CachedCall> shape{};
    Request request{};
    Duration timeout{};
  };
  explicit Prepared(Parts parts) : parts_(std::move(parts)) {}

  /// Begins the call with the arrays it was prepared with. Throws InvalidArgument
  /// unless the one before was waited for, or test() has told that it is over.
  void start();
  /// With another input of the same shape, strides and dtype. A call that was prepared in place works in place on it; otherwise
  /// the result goes where it went before.
  void start(View data);
  void start(View data, View out);
  /// Waits until it has ended; throws what went wrong. As Work::wait.
  void wait();
  void wait(TimeLimit timeout);
  /// Whether it has ended, well or not, or was never started. Makes progress.
  [[nodiscard]] bool test();
  [[nodiscard]] bool valid() const { return parts_.group != nullptr; }

 private:
  void start(Request& request);

  Parts parts_;
  Work work_;
  bool is_awaited_ = false;  // it was started, and nobody has heard of its end
};

}  // namespace tutti
