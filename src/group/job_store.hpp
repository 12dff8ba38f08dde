// job_store.hpp: the job's store for bindings, whose waits can be left.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include <tutti/group.hpp>
#include <tutti/store.hpp>

namespace tutti {

/// As job_store(group). While a call waits, it calls `between` every now and then, without any lock; if that throws, the request is given
/// up and the exception leaves the call.
std::shared_ptr<Store> interruptible_job_store(const Group& group, std::function<void()> between);

}  // namespace tutti
