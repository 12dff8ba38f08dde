// registry.hpp: groups as Python has them, and by the number under which compiled programs know them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>

#include <tutti/group.hpp>

namespace tutti {
class GroupCore;
}

namespace tutti::python {

/// A group, its number, and the groups of the same members that were made for it. Shared by all handles of Python.
class Member : public std::enable_shared_from_this<Member> {
 public:
  Member(Group group, std::int64_t id) : group_(std::move(group)), id_(id) {}

  [[nodiscard]] Group& group() { return group_; }
  [[nodiscard]] GroupCore& core() const { return *group_.core(); }
  [[nodiscard]] std::int64_t id() const { return id_; }
  [[nodiscard]] int rank() const { return group_.rank(); }
  [[nodiscard]] int size() const { return group_.size(); }

  /// The same members with sequence numbers of their own: for programs that call from threads of their own. The first call is
  /// collective, without the GIL.
  std::shared_ptr<Member> duplicate();
  /// The same members, last first. Likewise.
  std::shared_ptr<Member> reversed();
  /// Breaks the group on every member, and the groups made for it. Without the GIL.
  void abort(std::string_view reason);

 private:
  Group group_;
  std::int64_t id_;
  std::mutex mutex_;
  std::shared_ptr<Member> duplicate_, reversed_;
};

/// Enters a group under a number that no other group of this process ever had or gets.
std::shared_ptr<Member> enroll(Group group);
/// The group with that number; throws InvalidArgument if it is closed or never was.
std::shared_ptr<Member> group_of(std::int64_t id);

// With the GIL:
/// The world; throws InvalidArgument before init and after finalize.
std::shared_ptr<Member> world();
/// Null: none.
void set_world(std::shared_ptr<Member> world);
[[nodiscard]] bool has_world();

}  // namespace tutti::python
