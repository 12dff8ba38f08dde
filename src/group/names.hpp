// names.hpp: a group, its ranks and its calls as messages to people name them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>

#include <tutti/backend.hpp>

namespace tutti {

class Operation;
class Runtime;

class GroupNames {
 public:
  GroupNames(const GroupFacts& facts, const Runtime& runtime) : facts_(facts), runtime_(runtime) {}

  /// "rank 1 of 4".
  [[nodiscard]] std::string who() const;
  /// "the world", "group 3f0a of ranks 0, 3-7".
  [[nodiscard]] std::string group() const;
  /// "world", "ranks 0, 3-7".
  [[nodiscard]] std::string members() const;
  /// "rank 2 (host b)".
  [[nodiscard]] std::string rank(int rank) const;
  /// "all_reduce #412 (float32 × 1048576, sum)", "recv (float32 × 4, tag 3) from rank 1 in the world".
  [[nodiscard]] std::string call(const Operation& operation) const;
  /// "; messages that it does not take have come: tag 3 from rank 1"; empty if there are none. To add to a receive that waits.
  [[nodiscard]] std::string messages_not_taken() const;
  /// The error of a message whose other side has left the job, or refuses it because it leaves.
  [[nodiscard]] std::exception_ptr left_without(const Operation& message, int world_peer) const;

 private:
  const GroupFacts& facts_;
  const Runtime& runtime_;
};

}  // namespace tutti
