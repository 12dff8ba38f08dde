// ucx_library.cpp: opening UCX, and asking it what it knows.
// SPDX-License-Identifier: Apache-2.0
#include "link/ucx_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <sstream>

#include <tutti/error.hpp>

namespace tutti::link {
namespace {

constexpr const char* library_file = "libucp.so.0";

Ucx open_library() {
  Ucx ucx;
  void* const library = dlopen(library_file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const reason = dlerror();
    throw Unsupported(fmt::format("UCX cannot be opened: {}; install it (Debian: libucx0), or use another link",
                                  reason == nullptr ? "no reason is given" : reason));
  }
  ucx.file = library_file;
  const auto find = [library](const char* name) {
    void* const found = dlsym(library, name);
    if (found != nullptr) return found;
    throw Unsupported(fmt::format("{} has no {}: it is older than 1.11; install a newer UCX", library_file, name));
  };
#define TUTTI_FIND(name) ucx.name = reinterpret_cast<decltype(ucx.name)>(find(#name));
  TUTTI_UCP_FUNCTIONS(TUTTI_FIND)
#undef TUTTI_FIND
  return ucx;
}

UcxContextHandle make_context(const Ucx& ucx, const UcxOptions& options) {
  ucp_config_t* config = nullptr;
  check(ucx, ucx.ucp_config_read(nullptr, nullptr, &config), "ucp_config_read");
  const auto release = [&ucx](ucp_config_t* one) { ucx.ucp_config_release(one); };
  const std::unique_ptr<ucp_config_t, decltype(release)> holder(config, release);
  const auto set = [&](const char* name, const std::string& value) {
    if (!value.empty()) check(ucx, ucx.ucp_config_modify(config, name, value.c_str()), name);
  };
  set("TLS", options.transports);
  set("NET_DEVICES", options.devices);
  ucp_params_t parameters{};
  parameters.field_mask = UCP_PARAM_FIELD_FEATURES;
  parameters.features = UCP_FEATURE_AM;
  ucp_context_h context = nullptr;
  check(ucx, ucx.ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &parameters, config, &context), "ucp_init");
  return {context, DestroyUcx{&ucx}};
}

UcxWorkerHandle make_worker(const Ucx& ucx, ucp_context* context) {
  ucp_worker_params_t parameters{};
  parameters.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  parameters.thread_mode = UCS_THREAD_MODE_SERIALIZED;  // under the progress lock
  ucp_worker_h worker = nullptr;
  check(ucx, ucx.ucp_worker_create(context, &parameters, &worker), "ucp_worker_create");
  return {worker, DestroyUcx{&ucx}};
}

// UCX's names for the ways over InfiniBand, RoCE and the networks of supercomputers.
bool is_fabric(std::string_view transport) {
  constexpr std::array<std::string_view, 7> names{"rc", "dc", "ud", "ib", "ugni", "srd", "gga"};
  return std::ranges::any_of(names, [&](std::string_view name) {
    return transport.starts_with(name) &&
           (transport.size() == name.size() || transport[name.size()] == '_' || transport[name.size()] == '/');
  });
}

}  // namespace

const Ucx& open_ucx_library() {
  static std::mutex mutex;
  static const Ucx* opened = nullptr;  // never freed
  const std::lock_guard guard(mutex);
  if (opened == nullptr) opened = new Ucx(open_library());
  return *opened;
}

void check(const Ucx& ucx, ucs_status_t status, std::string_view what) {
  if (status == UCS_OK) return;
  throw Error(fmt::format("UCX failed in {}: {}", what, ucx.ucs_status_string(status)));
}

OpenUcxWorker::OpenUcxWorker(const UcxOptions& options)
    : ucx_(open_ucx_library()), context_(make_context(ucx_, options)), worker_(make_worker(ucx_, context_.get())) {}

std::string OpenUcxWorker::address() const {
  ucp_address_t* address = nullptr;
  std::size_t bytes = 0;
  check(ucx_, ucx_.ucp_worker_get_address(worker_.get(), &address, &bytes), "ucp_worker_get_address");
  std::string text(reinterpret_cast<const char*>(address), bytes);
  ucx_.ucp_worker_release_address(worker_.get(), address);
  return text;
}

// UCX tells what it found only as text for people: a word "tcp/eth0" in each line about a resource.
std::vector<std::string> OpenUcxWorker::transports() const {
  char* text = nullptr;
  std::size_t bytes = 0;
  std::FILE* const stream = open_memstream(&text, &bytes);
  if (stream == nullptr) throw Error("out of memory");
  ucx_.ucp_context_print_info(context_.get(), stream);
  std::fclose(stream);
  std::istringstream lines(std::string(text, bytes));
  std::free(text);
  std::vector<std::string> found;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("resource") == std::string::npos) continue;
    const std::size_t slash = line.rfind('/');
    if (slash == std::string::npos) continue;
    const std::size_t begin = line.find_last_of(" \t", slash) + 1;
    found.push_back(line.substr(begin, line.find_first_of(" \t", slash) - begin));
  }
  return found;
}

UcxFindings find_ucx(const UcxOptions& options) {
  UcxFindings found;
  try {
    const OpenUcxWorker worker(options);
    found.file = worker.ucx().file;
    found.transports = worker.transports();
    std::ranges::copy_if(found.transports, std::back_inserter(found.fabrics), is_fabric);
    found.version = worker.ucx().ucp_get_version_string();
  } catch (const Error& error) {
    found.problem = error.what();
  }
  return found;
}

std::unique_ptr<UcxWorker> open_ucx(const UcxOptions& options) { return std::make_unique<OpenUcxWorker>(options); }

}  // namespace tutti::link
