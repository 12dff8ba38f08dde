// init.hpp: joining a job, and leaving it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <type_traits>

#include <tutti/connector.hpp>
#include <tutti/group.hpp>

namespace tutti {

/// Joins the job this process was started in, as the launcher's environment or `options` say, and returns the world:
/// the group of all its ranks. Alone, a group of one in which every verb works without any socket. A second call
/// returns the same world.
Group init(const InitOptions& options = {});

/// Joins through the given connector. Tests use this to run ranks as threads.
Group init(std::shared_ptr<Connector> connector, const InitOptions& options = {});

/// What people know from MPI: says what to write.
template <class Count, class Arguments>
requires(std::is_same_v<std::decay_t<Count>, int> || std::is_same_v<std::decay_t<Count>, int*>) Group
    init(Count&&, Arguments&&) {
  static_assert(detail::never<Count>, "tutti: init() does not need argc and argv: write tutti::init()");
  return {};
}

/// The key-value store of the job that the group belongs to: small values that any rank sets and any rank reads, at any time. One rank
/// keeps it, rank 0 at first, and hands it over when it leaves; if it is lost, calls raise PeerLost. Key and value together are at most
/// 56 KiB.
std::shared_ptr<Store> job_store(const Group& group);
/// The same for the world that init() has joined.
std::shared_ptr<Store> job_store();

/// Leaves the job: says goodbye to the other ranks and closes every link; later calls on any group raise. Without this
/// call the job is left when the last Group of this process is destroyed.
void finalize();

}  // namespace tutti
