// file_store.hpp: a store in a file that all ranks can reach: one machine, or a shared file system.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>

#include <tutti/store.hpp>

namespace tutti {

// `path` is the file, made if it is not there, or a folder, in which the file is called tutti_store. Keys of earlier
// runs are still there: give each job its own file or prefix. The file must belong to this user and nobody else may
// write it: AuthenticationError otherwise. RendezvousError names the path and the system's reason where it cannot be
// used; a call that fails for a full disk leaves the store as it was.
std::shared_ptr<Store> file_store(const std::filesystem::path& path);

}  // namespace tutti
