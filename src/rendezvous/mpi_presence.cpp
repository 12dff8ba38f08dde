// mpi_presence.cpp: finding a loaded MPI library and asking it.
// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/mpi_presence.hpp"

#include <dlfcn.h>
#include <link.h>

#include <string>
#include <string_view>
#include <vector>

namespace tutti::rendezvous {
namespace {

int remember_mpi_library(dl_phdr_info* info, std::size_t, void* found) {
  const std::string_view path = info->dlpi_name == nullptr ? "" : info->dlpi_name;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  if (name.starts_with("libmpi.so") || name.starts_with("libmpich.so")) {
    static_cast<std::vector<std::string>*>(found)->emplace_back(path);
  }
  return 0;
}

}  // namespace

bool mpi_was_initialized() {
  std::vector<std::string> paths;
  dl_iterate_phdr(remember_mpi_library, &paths);
  for (const std::string& path : paths) {
    void* library = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) continue;
    const auto ask = reinterpret_cast<int (*)(int*)>(dlsym(library, "MPI_Initialized"));
    int flag = 0;
    const bool yes = ask != nullptr && ask(&flag) == 0 && flag != 0;
    dlclose(library);
    if (yes) return true;
  }
  return false;
}

}  // namespace tutti::rendezvous
