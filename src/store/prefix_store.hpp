// prefix_store.hpp: a part of another store, whose keys cannot collide with those of other parts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include <tutti/store.hpp>

namespace tutti {

// The key k is `prefix`/k in the store below. Prefixes nest. InvalidArgument for a null store.
std::shared_ptr<Store> prefix_store(std::shared_ptr<Store> below, std::string prefix);

}  // namespace tutti
