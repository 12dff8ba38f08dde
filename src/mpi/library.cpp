// library.cpp: finding and opening MPI and its plug-in.
// SPDX-License-Identifier: Apache-2.0
#include "mpi/library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>

#include <tutti/error.hpp>

namespace tutti::mpi {
namespace {

/// A binary interface of MPI: the libraries that have it and the plug-in that was compiled for it.
struct Interface {
  std::string_view key;   // in TUTTI_MPI
  std::string_view name;  // as people call it
  std::array<std::string_view, 2> files;
  std::string_view plugin;
  std::string_view launcher_variable;  // set by its mpirun
  std::string_view package;            // what to install
  bool is_choice_only = false;         // another name for libraries of a row below, where they are asked for by name
};

// Intel MPI and MVAPICH have MPICH's interface, under the name that its developers agreed on: libmpi.so.12. Debian calls MPICH's own
// library libmpich.so.12. Intel's launcher sets MPICH's variables, too, so its row comes first.
constexpr Interface interfaces[] = {
    {"openmpi",
     "Open MPI",
     {"libmpi.so.40", ""},
     "libtutti_mpi_openmpi.so",
     "OMPI_COMM_WORLD_SIZE",
     "Debian: libopenmpi3"},
    {"impi", "Intel MPI", {"libmpi.so.12", ""}, "libtutti_mpi_mpich.so", "I_MPI_HYDRA_UUID", "PyPI: impi-rt", true},
    {"mpich", "MPICH", {"libmpich.so.12", "libmpi.so.12"}, "libtutti_mpi_mpich.so", "PMI_SIZE", "Debian: libmpich12"},
    {"abi", "MPI's standard interface", {"libmpi_abi.so.1", ""}, "libtutti_mpi_abi.so", "", "PyPI: impi-rt"},
};

std::string_view name_in(std::string_view path) { return path.substr(path.rfind('/') + 1); }

int note_loaded(dl_phdr_info* info, std::size_t, void* found) {
  const std::string_view path = info->dlpi_name == nullptr ? "" : info->dlpi_name;
  for (const Interface& one : interfaces) {
    if (one.is_choice_only) continue;
    for (const std::string_view file : one.files) {
      if (!file.empty() && name_in(path).starts_with(file))
        static_cast<std::vector<std::pair<const Interface*, std::string>>*>(found)->emplace_back(&one, path);
    }
  }
  return 0;
}

/// Those that are in this process already, also if a Python module loaded them for itself.
std::vector<std::pair<const Interface*, std::string>> loaded_libraries() {
  std::vector<std::pair<const Interface*, std::string>> found;
  dl_iterate_phdr(note_loaded, &found);
  return found;
}

bool is_initialized(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return false;
  const auto ask = reinterpret_cast<int (*)(int*)>(dlsym(library, "MPI_Initialized"));
  int flag = 0;
  const bool yes = ask != nullptr && ask(&flag) == 0 && flag != 0;
  dlclose(library);
  return yes;
}

std::string last_error() {
  const char* const text = dlerror();
  return text == nullptr ? "no reason is given" : text;
}

std::string folder_of_this_code() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&find_library), &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code error;
  const auto path = std::filesystem::canonical(info.dli_fname, error);
  return error ? std::string() : path.parent_path().string();
}

const TuttiMpiPlugin* open_plugin(const Interface& one, const Environment& environment, std::string& problem) {
  const auto folders = plugin_folders(environment);
  for (const std::string& folder : folders) {
    const std::string path = folder + "/" + std::string(one.plugin);
    std::error_code error;
    if (!std::filesystem::exists(path, error)) continue;
    void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      problem = last_error();
      return nullptr;
    }
    const auto entry = reinterpret_cast<TuttiMpiPluginEntry>(dlsym(handle, TUTTI_MPI_PLUGIN_SYMBOL));
    const TuttiMpiPlugin* const plugin = entry == nullptr ? nullptr : entry();
    if (plugin != nullptr && plugin->version == TUTTI_MPI_PLUGIN_VERSION) return plugin;
    problem = fmt::format("{} is of another version of Tutti", path);
    return nullptr;
  }
  problem = fmt::format(
      "the plug-in {} is not there; it is built where the header of its interface is found: build Tutti again after "
      "installing {}",
      one.plugin, one.package);
  return nullptr;
}

/// What is wrong with a library that was found under an interface's name; empty: nothing. Open MPI's handles are addresses of objects that it
/// exports; a plug-in for one of the other interfaces would find all its functions there, and crash in the first.
std::string wrong_interface(const Interface& one, void* library) {
  if (one.key == "abi") return {};
  const bool is_open_mpi = dlsym(library, "ompi_mpi_comm_world") != nullptr, is_expected = one.key == "openmpi";
  if (is_open_mpi == is_expected) return {};
  return fmt::format(
      "the library under this name is {}Open MPI and has another binary interface; look for a wrong link in "
      "LD_LIBRARY_PATH, or set TUTTI_MPI to the file of the MPI whose mpirun started the job",
      is_open_mpi ? "" : "not ");
}

/// Opens an MPI library for all to see, so that the plug-in finds it, and the plug-in.
std::shared_ptr<const Library> open_library(const Interface& one, const std::string& file,
                                            const Environment& environment, std::string& problem) {
  void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
  problem = handle == nullptr ? last_error() : wrong_interface(one, handle);
  if (!problem.empty()) return nullptr;
  const TuttiMpiPlugin* const plugin = open_plugin(one, environment, problem);
  if (plugin == nullptr) return nullptr;
  auto library = std::make_shared<Library>();
  library->plugin = plugin;
  library->name = one.name;
  library->file = file;
  std::vector<char> text(TUTTI_MPI_TEXT_MAX);
  if (plugin->library_version(text.data()) == 0) library->version = text.data();
  library->version = library->version.substr(0, library->version.find_first_of("\n\r"));
  std::ranges::replace(library->version, '\t', ' ');
  while (library->version.ends_with(' ')) library->version.pop_back();
  static_cast<void>(plugin->standard_version(&library->standard_major, &library->standard_minor));
  return library;
}

/// An MPI library that was opened here, and why. When it is looked for again it is in the process, but the program has not loaded it.
struct Opened {
  std::string file, reason;
};

class OpenedLibraries {
 public:
  static OpenedLibraries& self() {
    static OpenedLibraries one;
    return one;
  }
  /// The first reason stays.
  void note(const std::string& file, std::string_view reason) {
    const std::scoped_lock lock(mutex_);
    opened_.try_emplace(handle_of(file), Opened{.file = file, .reason = std::string(reason)});
  }
  [[nodiscard]] std::optional<Opened> find(const std::string& file) const {
    const std::scoped_lock lock(mutex_);
    const auto found = opened_.find(handle_of(file));
    return found == opened_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  /// The same for every name of a library that is in the process.
  static const void* handle_of(const std::string& file) {
    void* const handle = dlopen(file.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (handle != nullptr) dlclose(handle);
    return handle;
  }

  mutable std::mutex mutex_;
  std::map<const void*, Opened> opened_;
};

class Search {
 public:
  explicit Search(const Environment& environment) : environment_(environment) {}

  /// False: it could not be opened; the attempt is noted.
  bool attempt(const Interface& one, const std::string& file, std::string_view reason) {
    std::string problem;
    found_.library = open_library(one, file, environment_, problem);
    found_.attempts.push_back({.name = std::string(one.name), .file = file, .problem = problem});
    if (!found_.library) return false;
    found_.reason = reason;
    OpenedLibraries::self().note(file, reason);
    return true;
  }
  bool attempt_any_file(const Interface& one, std::string_view reason) {
    return std::ranges::any_of(
        one.files, [&](std::string_view file) { return !file.empty() && attempt(one, std::string(file), reason); });
  }
  void note(std::string name, std::string problem) {
    found_.attempts.push_back({.name = std::move(name), .file = "", .problem = std::move(problem)});
  }
  [[nodiscard]] Found take() { return std::move(found_); }

 private:
  const Environment& environment_;
  Found found_;
};

Found find_asked_for(const std::string& asked, const Environment& environment) {
  Search search(environment);
  for (const Interface& one : interfaces) {
    const std::string_view file = name_in(asked);
    const bool is_file = !one.is_choice_only && std::ranges::any_of(one.files, [&](std::string_view known) {
      return !known.empty() && file.starts_with(known);
    });
    if (asked == one.key) {
      search.attempt_any_file(one, "TUTTI_MPI asks for it");
      return search.take();
    }
    if (is_file) {
      search.attempt(one, asked, "TUTTI_MPI asks for it");
      return search.take();
    }
  }
  search.note(asked,
              "TUTTI_MPI takes openmpi, mpich, impi, abi, or the file libmpi.so.40, libmpi.so.12, libmpich.so.12 or "
              "libmpi_abi.so.1");
  return search.take();
}

std::optional<Found> find_loaded(const Environment& environment) {
  auto loaded = loaded_libraries();
  if (loaded.empty()) return std::nullopt;
  if (loaded.size() > 1) {
    std::erase_if(loaded, [](const auto& one) { return !is_initialized(one.second); });
  }
  Search search(environment);
  if (loaded.size() == 1) {
    const auto& [interface, file] = loaded[0];
    const Opened known = OpenedLibraries::self().find(file).value_or(Opened{file, "the program has loaded it"});
    search.attempt(*interface, known.file, known.reason);
  } else {
    search.note("MPI", "the program has loaded several MPI libraries; link it, and mpi4py, with the same one");
  }
  return search.take();
}

}  // namespace

std::vector<std::string> plugin_folders(const Environment& environment) {
  std::vector<std::string> folders;
  if (const auto folder = environment.get("TUTTI_MPI_PLUGINS")) folders.push_back(*folder);
  if (const std::string here = folder_of_this_code(); !here.empty()) {
    folders.push_back(here + "/tutti");         // beside libtutti.so
    folders.push_back(here);                    // beside the Python module
    folders.push_back(here + "/../lib/tutti");  // beside bin/tutti
  }
  folders.emplace_back(TUTTI_MPI_PLUGIN_FOLDER);
  return folders;
}

Found find_library(const Environment& environment) {
  if (const auto asked = environment.get("TUTTI_MPI"); asked && !asked->empty())
    return find_asked_for(*asked, environment);
  if (auto found = find_loaded(environment)) return *std::move(found);
  Search search(environment);
  for (const Interface& one : interfaces) {
    if (one.launcher_variable.empty() || !environment.has(one.launcher_variable)) continue;
    const std::string reason = fmt::format("its launcher started this process ({} is set)", one.launcher_variable);
    search.attempt_any_file(one, reason);
    return search.take();
  }
  for (const Interface& one : interfaces) {
    if (!one.is_choice_only && search.attempt_any_file(one, "it is the first that can be opened")) break;
  }
  return search.take();
}

std::vector<Attempt> survey(const Environment& environment) {
  std::vector<Attempt> all;
  const auto folders = plugin_folders(environment);
  for (const Interface& one : interfaces) {
    if (one.is_choice_only) continue;
    Attempt attempt{.name = std::string(one.name), .file = "", .problem = ""};
    for (const std::string_view file : one.files) {
      if (file.empty() || !attempt.file.empty()) continue;
      if (void* const library = dlopen(std::string(file).c_str(), RTLD_LAZY | RTLD_LOCAL)) {
        attempt.file = file;
        dlclose(library);
      }
    }
    const bool has_plugin = std::ranges::any_of(folders, [&](const std::string& folder) {
      std::error_code error;
      return std::filesystem::exists(folder + "/" + std::string(one.plugin), error);
    });
    if (attempt.file.empty()) attempt.problem = fmt::format("{} is not installed ({})", one.files[0], one.package);
    else if (!has_plugin) attempt.problem = fmt::format("this build has no plug-in for it ({})", one.plugin);
    all.push_back(std::move(attempt));
  }
  return all;
}

std::string describe_problems(const Found& found) {
  std::string text;
  for (const Attempt& attempt : found.attempts) {
    if (attempt.problem.empty()) continue;
    if (!text.empty()) text += "; ";
    text += attempt.file.empty() ? fmt::format("{}: {}", attempt.name, attempt.problem)
                                 : fmt::format("{} ({}): {}", attempt.name, attempt.file, attempt.problem);
  }
  return text;
}

}  // namespace tutti::mpi
