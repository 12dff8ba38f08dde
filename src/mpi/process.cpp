// process.cpp: entering and leaving MPI.
// SPDX-License-Identifier: Apache-2.0
#include "mpi/process.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include <tutti/clock.hpp>
#include <tutti/error.hpp>

#include "kernel/kernel.hpp"

namespace tutti::mpi {
namespace {

using namespace std::chrono_literals;

// MPI_Finalize would wait for the other ranks without an end. Where the last call was given up, they may be gone.
constexpr Duration leaving_limit = 300s, leaving_limit_given_up = 2s;
constexpr Duration closing_nap = 100us;

void reduce_elements(int op, int dtype, void* to, const void* a, std::int64_t count) {
  kernel::reduce(static_cast<Op::Kind>(op), static_cast<DType>(dtype), to, a, to, count);
}

// Registered after the function by which worlds are left at exit, and so called before it.
void end_if_inside_mpi() {
  if (InsideMpi::is_inside()) _exit(1);
}

}  // namespace

Process& Process::self() {
  static auto* instance = new Process;
  return *instance;
}

bool Process::is_finalized() const {
  int flag = 0;
  return library_->plugin->finalized(&flag) == 0 && flag != 0;
}

void Process::enter(const std::shared_ptr<const Library>& library, const Log& log) {
  const std::lock_guard guard(mutex_);
  library_ = library;
  log_ = log;
  const TuttiMpiPlugin& plugin = *library->plugin;
  if (is_finalized())
    throw Error("MPI was finalised in this process, and cannot be initialised again; call tutti.init() before that");
  int is_initialized = 0;
  check(*library, plugin.initialized(&is_initialized), "MPI_Initialized");
  if (is_initialized == 0) {
    check(*library, plugin.initialize(), "MPI_Init_thread");
    std::atexit(leave_at_exit);
  }
  int any_thread = 0;
  check(*library, plugin.any_thread_may_call(&any_thread), "MPI_Query_thread");
  if (any_thread == 0) {
    throw Error(
        "MPI does not let several threads call it (MPI_THREAD_MULTIPLE), which the progress of asynchronous calls "
        "needs; initialise MPI by MPI_Init_thread with that level, or leave it to tutti.init()");
  }
  const TuttiMpiKernels kernels{.reduce = reduce_elements, .before_finalize = before_finalize};
  check(*library, plugin.prepare(&kernels), "MPI_Comm_create_keyval");
}

std::shared_ptr<Communicator> Process::communicator_of(const JobFacts& job, const GroupFacts& facts) {
  static const int registered = std::atexit(end_if_inside_mpi);
  static_cast<void>(registered);
  const std::lock_guard guard(mutex_);
  std::erase_if(communicators_, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<Communicator>& known = communicators_[{facts.id, facts.epoch}];
  if (auto communicator = known.lock()) return communicator;
  Communicator::Parts parts{.library = job.library, .base = job.base};
  for (const int rank : facts.world_of) parts.ranks.push_back(job.rank_in_base[static_cast<std::size_t>(rank)]);
  parts.tag = static_cast<int>(facts.id % static_cast<std::uint64_t>(job.tag_max));
  auto made = std::shared_ptr<Communicator>(new Communicator(std::move(parts)), [this](Communicator* communicator) {
    close(std::unique_ptr<Communicator>(communicator));
  });
  known = made;
  return made;
}

void Process::close(std::unique_ptr<Communicator> communicator) {
  {
    const std::lock_guard guard(mutex_);
    closing_.push_back(std::move(communicator));
  }
  poll_closing();
}

void Process::poll_closing() {
  const std::lock_guard guard(mutex_);
  if (closing_.empty() || is_finalized()) return;
  std::erase_if(closing_, [](const auto& communicator) {
    try {
      return communicator->closes();
    } catch (const Error&) {
      return false;  // it stays as it is; MPI is not finalised then
    }
  });
}

// Groups that live on are not used any more.
bool Process::close_all() {
  const std::lock_guard guard(mutex_);
  std::vector<Communicator*> open;
  for (const auto& communicator : closing_) open.push_back(communicator.get());
  for (const auto& [key, weak] : communicators_) {
    const auto communicator = weak.lock();
    if (!communicator) continue;
    open.push_back(communicator.get());
    living_.push_back(communicator);
  }
  const bool is_given_up = std::ranges::any_of(open, [](const auto* one) { return one->is_given_up(); });
  const TimePoint limit = steady_clock().now() + (is_given_up ? leaving_limit_given_up : leaving_limit);
  for (;;) {
    std::erase_if(open, [](Communicator* communicator) { return communicator->closes(); });
    if (open.empty()) return true;
    if (steady_clock().now() >= limit) return false;
    std::this_thread::sleep_for(closing_nap);
  }
}

void Process::before_finalize() {
  try {
    if (!self().close_all()) self().log_.warn("MPI is finalised while calls are under way that were given up");
  } catch (const std::exception& error) {
    self().log_.warn("MPI is finalised, and a communicator could not be freed: {}", error.what());
  }
}

// After every world has been left.
void Process::leave_at_exit() {
  Process& here = self();
  if (here.is_finalized()) return;
  try {
    if (here.close_all()) {
      static_cast<void>(here.library_->plugin->finalize());
    } else {
      here.log_.warn("MPI is not finalised: calls were given up that it has not ended, or other ranks do not leave");
    }
  } catch (const std::exception& error) {
    here.log_.warn("MPI is not finalised: {}", error.what());
  }
}

}  // namespace tutti::mpi
