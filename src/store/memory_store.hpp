// memory_store.hpp: a store for ranks that are threads of one process.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <tutti/store.hpp>

namespace tutti {

std::shared_ptr<Store> memory_store();

}  // namespace tutti
