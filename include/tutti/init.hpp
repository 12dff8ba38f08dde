// init.hpp: joining a job, and leaving it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <tutti/connector.hpp>
#include <tutti/group.hpp>

namespace tutti {

/// Joins the job this process was started in, as the launcher's environment or `options` say, and returns the world:
/// the group of all its ranks. Alone, a group of one in which every verb works without any socket. A second call
/// returns the same world.
Group init(const InitOptions& options = {});

/// Joins through the given connector. Tests use this to run ranks as threads.
Group init(std::shared_ptr<Connector> connector, const InitOptions& options = {});

/// Leaves the job: says goodbye to the other ranks and closes every link; later calls on any group raise. Without this
/// call the job is left when the last Group of this process is destroyed.
void finalize();

}  // namespace tutti
