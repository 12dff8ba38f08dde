// group_backend.hpp: the backend that a group asks for, other than the job's.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <tutti/backend.hpp>
#include <tutti/clock.hpp>

namespace tutti {

class CachedCall;
class GroupCore;

/// What a group was asked to use. Groups that are made of it inherit it.
struct GroupBackend {
  std::string name{};    // empty: the first of the job's that serves the group
  BackendFactory mpi{};  // where this group joined MPI, and the job has not
};

/// The name for a group that is made of `parent`; `asked` is what the caller gave. Unsupported if there is no such backend.
std::string backend_to_ask_for(const GroupCore& parent, const std::string& asked);

/// What the members tell each other as they make the group, and what the lowest of them told.
std::vector<std::byte> backend_record(const std::string& name);

/// Throws Mismatch, and breaks the group for the other members, where the lowest of them (`lowest`: its record) asks for another backend.
void check_same_backend(GroupCore& group, const std::string& name, const std::vector<std::byte>& lowest);

/// A new group goes over to the backend; all members call it. Unsupported where the backend cannot serve the group.
void use_backend(const std::shared_ptr<GroupCore>& group, const GroupCore& parent, const std::string& name,
                 Duration timeout);

/// TUTTI_LOG=info: which backend the group uses, and why. `first`: of the job's first group; others are told at debug.
void log_backend(const GroupCore& group, bool first);
/// TUTTI_LOG=debug: how calls of a new shape are carried out, and why so.
void log_choice(const GroupCore& group, const CachedCall& shape, const PreparedCall& call, const std::string& refusals);

}  // namespace tutti
