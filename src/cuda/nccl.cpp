// nccl.cpp: NCCL, opened at run time.
// SPDX-License-Identifier: Apache-2.0
#include "cuda/nccl.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <filesystem>

#include "cuda/symbols.hpp"

namespace tutti::nccl {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view library_name = "libnccl.so.2";

const char* load(Functions& f, void* library) {
  cuda::Symbols load(library);
  load(f.version, "ncclGetVersion")(f.unique_id, "ncclGetUniqueId")(f.error_text, "ncclGetErrorString");
  load(f.last_error, "ncclGetLastError")(f.init, "ncclCommInitRankConfig")(f.abort, "ncclCommAbort");
  load(f.async_error, "ncclCommGetAsyncError")(f.premul_sum, "ncclRedOpCreatePreMulSum");
  load(f.destroy_reduction, "ncclRedOpDestroy")(f.group_start, "ncclGroupStart")(f.group_end, "ncclGroupEnd");
  load(f.all_reduce, "ncclAllReduce")(f.reduce, "ncclReduce")(f.reduce_scatter, "ncclReduceScatter");
  load(f.broadcast, "ncclBroadcast")(f.all_gather, "ncclAllGather")(f.send, "ncclSend")(f.recv, "ncclRecv");
  return load.missing();
}

std::string last_dl_error() {
  const char* const text = dlerror();
  return text == nullptr ? "no reason is given" : text;
}

/// The library that is in this process already, also if a Python module loaded it for itself.
std::string loaded_file() {
  std::string found;
  const auto note = [](dl_phdr_info* info, std::size_t, void* to) {
    const std::string_view path = info->dlpi_name == nullptr ? "" : info->dlpi_name;
    if (!path.substr(path.rfind('/') + 1).starts_with(library_name)) return 0;
    *static_cast<std::string*>(to) = path;
    return 1;
  };
  dl_iterate_phdr(note, &found);
  return found;
}

std::string folder_of_this_code() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&loaded_file), &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code error;
  const auto path = fs::canonical(info.dli_fname, error);
  return error ? std::string() : path.parent_path().string();
}

/// Takes the functions of a library that was opened.
Found take(void* library, const std::string& file) {
  Found found{.file = file};
  auto functions = std::make_unique<Functions>();
  const char* const missing = load(*functions, library);
  if (functions->version == nullptr || functions->version(&found.version) != success) {
    found.problem = fmt::format("{} is not NCCL: it has no version", file);
  } else if (found.version < oldest_version) {
    found.problem = fmt::format("{} is NCCL {}, and {} or newer is needed", file, version_text(found.version),
                                version_text(oldest_version));
  } else if (missing != nullptr) {
    found.problem = fmt::format("{} (NCCL {}) has no {}", file, version_text(found.version), missing);
  } else {
    found.functions = functions.release();  // as long as the process: the library is never closed
  }
  return found;
}

/// Every package of an environment: lib/python3.12/site-packages and the like below `prefix`.
void add_packages(const fs::path& prefix, std::vector<std::string>& files) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(prefix / "lib", error)) {
    if (!entry.path().filename().string().starts_with("python3")) continue;
    for (const char* const packages : {"site-packages", "dist-packages"})
      files.push_back(entry.path() / packages / "nvidia/nccl/lib" / library_name);
  }
}

}  // namespace

std::string version_text(int version) {
  if (version < 10000) return fmt::format("{}.{}.{}", version / 1000, version / 100 % 10, version % 100);  // up to 2.8
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

std::vector<std::string> packaged_files(const std::string& executable, const std::string& folder,
                                        const Environment& environment) {
  std::vector<std::string> files;
  for (fs::path up = folder; up.has_relative_path(); up = up.parent_path())  // a package beside NCCL's
    files.push_back(up / "nvidia/nccl/lib" / library_name);
  for (const char* const variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const auto prefix = environment.get(variable); prefix && !prefix->empty()) add_packages(*prefix, files);
  }
  add_packages(fs::path(executable).parent_path().parent_path(), files);
  add_packages("/usr/local", files);
  std::erase_if(files, [](const std::string& file) {
    std::error_code error;
    return !fs::exists(file, error);
  });
  return files;
}

Found open(const Environment& environment) {
  const std::string asked = environment.get("TUTTI_NCCL_LIBRARY").value_or("");
  if (asked == "none") return {.problem = "TUTTI_NCCL_LIBRARY=none asks for NCCL not to be used"};
  std::vector<std::string> files;
  if (!asked.empty()) {
    files = {asked};
  } else {
    if (std::string file = loaded_file(); !file.empty()) files.push_back(std::move(file));
    files.emplace_back(library_name);
    std::error_code error;
    const fs::path executable = fs::read_symlink("/proc/self/exe", error);
    for (std::string& file : packaged_files(executable, folder_of_this_code(), environment))
      files.push_back(std::move(file));
  }
  std::string problem;
  for (const std::string& file : files) {
    void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      if (problem.empty()) problem = fmt::format("NCCL is not there: {}", last_dl_error());
      continue;
    }
    Found found = take(library, file);
    if (found.functions != nullptr) return found;
    problem = found.problem;
  }
  return {.problem = problem + "; pip install nvidia-nccl-cu13, or name its file in TUTTI_NCCL_LIBRARY"};
}

const Found& find() {
  static const Found found = open(Environment::of_process());
  return found;
}

std::string describe(const Functions& functions, Result result, Communicator communicator) {
  const std::string text = functions.error_text(result);
  const char* const last = functions.last_error(communicator);
  const std::string_view said(last == nullptr ? ""
                                              : last);  // some of it ends in blanks, where NCCL had nothing to fill in
  const std::size_t end = said.find_last_not_of(" \n") + 1;
  return end == 0 ? text : fmt::format("{}: {}", text, said.substr(0, end));
}

}  // namespace tutti::nccl
