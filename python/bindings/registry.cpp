// registry.cpp: groups as Python has them.
// SPDX-License-Identifier: Apache-2.0
#include "bindings/registry.hpp"

#include <fmt/format.h>

#include <map>
#include <numeric>
#include <vector>

#include <tutti/error.hpp>

#include "group/core.hpp"

namespace tutti::python {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::int64_t, std::weak_ptr<Member>> members;
  std::int64_t next_id = 1;
  std::shared_ptr<Member> world;  // under the GIL, which all that ask for it have
};

Registry& registry() {
  static auto* instance = new Registry;  // never destroyed: the interpreter ends after static objects
  return *instance;
}

std::vector<int> own_ranks(const Member& member) {
  std::vector<int> ranks(std::size_t(member.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

}  // namespace

std::shared_ptr<Member> enroll(Group group) {
  Registry& all = registry();
  const std::lock_guard guard(all.mutex);
  const std::int64_t id = all.next_id++;
  auto member = std::make_shared<Member>(std::move(group), id);
  std::erase_if(all.members, [](const auto& entry) { return entry.second.expired(); });
  all.members[id] = member;
  return member;
}

std::shared_ptr<Member> group_of(std::int64_t id) {
  Registry& all = registry();
  const std::lock_guard guard(all.mutex);
  const auto found = all.members.find(id);
  if (found != all.members.end()) {
    if (auto member = found->second.lock()) return member;
  }
  throw InvalidArgument(fmt::format(
      "group number {} is closed: a compiled program uses a group that is gone; keep the group while programs use it",
      id));
}

std::shared_ptr<Member> world() {
  const Registry& all = registry();
  if (!all.world) throw InvalidArgument("this process has not joined a job: call tutti.init() first");
  return all.world;
}

void set_world(std::shared_ptr<Member> world) { std::swap(registry().world, world); }

bool has_world() { return registry().world != nullptr; }

std::shared_ptr<Member> Member::duplicate() {
  const std::lock_guard guard(mutex_);
  if (!duplicate_) duplicate_ = enroll(group_.subgroup(own_ranks(*this)));
  return duplicate_;
}

std::shared_ptr<Member> Member::reversed() {
  const std::lock_guard guard(mutex_);
  if (!reversed_) {
    auto ranks = own_ranks(*this);
    reversed_ = enroll(group_.subgroup(std::vector<int>(ranks.rbegin(), ranks.rend())));
  }
  return reversed_;
}

void Member::abort(std::string_view reason) {
  const std::lock_guard guard(mutex_);
  for (const auto& made : {duplicate_, reversed_}) {
    if (made) made->group_.abort(reason);
  }
  group_.abort(reason);
}

}  // namespace tutti::python
