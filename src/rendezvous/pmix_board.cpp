// pmix_board.cpp: a record in PMIx's key-value space, with the library that the launcher brings, opened at run time.
// SPDX-License-Identifier: Apache-2.0
//
// PMIx counts its inits: one per process from here, beside MPI's own, and one finalize when the process exits.
#include <dlfcn.h>
#include <fmt/format.h>
#include <pmix.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include <tutti/error.hpp>

#include "rendezvous/boards.hpp"

namespace tutti::rendezvous {
namespace {

class PmixLibrary {
 public:
  // Throws Unsupported if there is no library.
  PmixLibrary() {
    for (const char* name : {"libpmix.so.2", "libpmix.so"}) {
      if (library_ == nullptr) library_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    if (library_ == nullptr) throw Unsupported(fmt::format("the PMIx library cannot be opened: {}", dlerror()));
    load(init, "PMIx_Init");
    load(put, "PMIx_Put");
    load(commit, "PMIx_Commit");
    load(fence, "PMIx_Fence_nb");
    load(get, "PMIx_Get");
    load(finalize, "PMIx_Finalize");
    load(error_text, "PMIx_Error_string");
  }

  decltype(&PMIx_Init) init = nullptr;
  decltype(&PMIx_Put) put = nullptr;
  decltype(&PMIx_Commit) commit = nullptr;
  decltype(&PMIx_Fence_nb) fence = nullptr;
  decltype(&PMIx_Get) get = nullptr;
  decltype(&PMIx_Finalize) finalize = nullptr;
  decltype(&PMIx_Error_string) error_text = nullptr;

 private:
  template <class Function>
  void load(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(library_, name));
    if (function == nullptr) throw Unsupported(fmt::format("the PMIx library has no {}", name));
  }

  void* library_ = nullptr;  // never closed: PMIx keeps threads of its own
};

// The process's one connection to its PMIx server.
class ProcessSession {
 public:
  static ProcessSession& instance() {
    static ProcessSession session;
    return session;
  }

  ProcessSession() { check(library_.init(&self_, nullptr, 0), "PMIx_Init"); }
  ~ProcessSession() {
    if (process_ == getpid()) library_.finalize(nullptr, 0);  // a forked child must not sign off for its parent
  }

  void put(const std::string& key, const std::string& text) {
    std::string copy = text;
    pmix_value_t value{};
    value.type = PMIX_STRING;
    value.data.string = copy.data();
    check(library_.put(PMIX_GLOBAL, key.c_str(), &value), "PMIx_Put");
    check(library_.commit(), "PMIx_Commit");
  }

  // PMIx's own timeout is optional for servers, so the wait is ours.
  void fence(TimePoint deadline) {
    struct Progress {
      std::mutex mutex;
      std::condition_variable changed;
      bool done = false;
      pmix_status_t status = PMIX_SUCCESS;
    };
    auto* shared = new std::shared_ptr<Progress>(std::make_shared<Progress>());
    const std::shared_ptr<Progress> progress = *shared;
    const auto finished = [](pmix_status_t status, void* data) {
      const std::unique_ptr<std::shared_ptr<Progress>> owner(static_cast<std::shared_ptr<Progress>*>(data));
      const std::lock_guard lock((*owner)->mutex);
      (*owner)->status = status;
      (*owner)->done = true;
      (*owner)->changed.notify_all();
    };
    pmix_info_t collect = flag(PMIX_COLLECT_DATA);
    const pmix_status_t started = library_.fence(nullptr, 0, &collect, 1, finished, shared);
    if (started != PMIX_SUCCESS) {
      delete shared;
      check(started == PMIX_OPERATION_SUCCEEDED ? PMIX_SUCCESS : started, "PMIx_Fence");
      return;
    }
    std::unique_lock lock(progress->mutex);
    if (!progress->changed.wait_until(lock, deadline, [&] { return progress->done; })) {
      throw RendezvousError("not all ranks came to PMIx's fence in time; check that every rank of the job calls init");
    }
    check(progress->status, "PMIx_Fence");
  }

  std::string get_of_rank_0(const std::string& key) {
    pmix_proc_t root = self_;
    root.rank = 0;
    pmix_value_t* value = nullptr;
    check(library_.get(&root, key.c_str(), nullptr, 0, &value), "PMIx_Get");
    const bool text = value != nullptr && value->type == PMIX_STRING && value->data.string != nullptr;
    std::string result = text ? value->data.string : "";
    if (text) std::free(value->data.string);
    std::free(value);
    return result;
  }

 private:
  static pmix_info_t flag(const char* key) {
    pmix_info_t info{};
    std::strncpy(info.key, key, sizeof info.key - 1);
    info.value.type = PMIX_BOOL;
    info.value.data.flag = true;
    return info;
  }

  void check(pmix_status_t status, std::string_view call) const {
    if (status == PMIX_SUCCESS) return;
    throw RendezvousError(
        fmt::format("{} failed: {}; check that the launcher still runs and that its PMIx fits the "
                    "library of this machine",
                    call, library_.error_text(status)));
  }

  PmixLibrary library_;
  pmix_proc_t self_{};
  pid_t process_ = getpid();
};

class PmixBoard : public Board {
 public:
  explicit PmixBoard(BoardKey key) : key_(std::move(key)) {}

  void post(const RendezvousRecord& record, TimePoint deadline) override {
    session_.put(key_.key, record.text());
    session_.fence(deadline);
  }

  RendezvousRecord fetch(TimePoint deadline) override {
    if (!fenced_) session_.fence(deadline);
    fenced_ = true;
    if (auto record = RendezvousRecord::parse(session_.get_of_rank_0(key_.key))) return *std::move(record);
    throw RendezvousError(
        fmt::format("what rank 0 left in PMIx under \"{}\" is no note of this version; check that all "
                    "ranks use the same Tutti",
                    key_.key));
  }

  [[nodiscard]] bool keeps_secrets() const override { return true; }
  [[nodiscard]] std::string describe() const override { return "PMIx's key-value space"; }

 private:
  ProcessSession& session_ = ProcessSession::instance();
  BoardKey key_;
  bool fenced_ = false;
};

}  // namespace

std::unique_ptr<Board> make_pmix_board(BoardKey key) { return std::make_unique<PmixBoard>(std::move(key)); }

}  // namespace tutti::rendezvous
