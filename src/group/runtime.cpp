// runtime.cpp: one rank's part in a job: its groups, its progress, and how it leaves.
// SPDX-License-Identifier: Apache-2.0
#include "group/runtime.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <utility>

#include <tutti/error.hpp>

#include "base/line_writer.hpp"
#include "group/core.hpp"
#include "intranode/intranode_executor.hpp"

namespace tutti {
namespace {

using namespace std::chrono_literals;

// Limit for the last bytes to each peer, when everything else has arrived and the peers are no longer watched. At the limit the links are
// closed anyway: a peer that has not read the bytes by then, because it was stopped just now, sees a loss.
constexpr Duration goodbye_limit = 60s;

}  // namespace

// What the program printed is not lost: the handler flushes, because _Exit does not.
void fail_at_exit() {
  static const int registered = std::atexit([] {
    std::fflush(nullptr);
    LineWriter::of_stderr().flush(500ms);
    std::_Exit(EXIT_FAILURE);
  });
  (void)registered;
}

std::shared_ptr<record::Recorder> recorder_of(const Runtime& runtime) { return runtime.parts().recorder; }
const Transport& transport_of(const Runtime& runtime) { return runtime.transport(); }

void Runtime::start() {
  parts_.transport->listen(&directory_);
  control_->start(directory_);
  if (parts_.threaded && parts_.transport->size() > 1) start_thread();
  if (parts_.launcher) {
    news_ = std::make_unique<LauncherNews>(std::move(parts_.launcher),
                                           [this](int rank, std::string_view how) { process_ended(rank, how); });
  }
}

void Runtime::process_ended(int rank, std::string_view how) {
  {
    const Guard guard(mutex_);
    control_->process_ended(rank, how);
  }
  parts_.transport->wake();
}

// A destructor cannot throw; the process does not end as if nothing had happened.
Runtime::~Runtime() {
  leave();
  say_leave_error();
}

void Runtime::leave_at_exit() {
  ends_process_ = std::this_thread::get_id();
  process_ends_ = true;
  leave();
  if (thread_id_ != std::this_thread::get_id()) leaves_alone_.wait(LeavesAlone::leaving);
  say_leave_error();
}

void Runtime::say_leave_error() {
  const std::exception_ptr late = take_leave_error();
  if (!late) return;
  try {
    std::rethrow_exception(late);
  } catch (const std::exception& error) {
    parts_.log.error("{}", error.what());
  }
  if (parts_.fails_at_exit) fail_at_exit();
}

void Runtime::leave() {
  if (forked_ || leaving_.exchange(true)) return;
  const bool is_alone = thread_id_ == std::this_thread::get_id();
  if (is_alone) leaves_alone_ = LeavesAlone::leaving;
  try {
    say_goodbye();
  } catch (const InvalidArgument&) {  // a callback has forked, and this is the child
    return;
  }
  news_.reset();
  stop_thread();
  Guard guard(mutex_);
  for (const auto& [id, group] : std::map(directory_.groups())) {
    group->parts().failure.break_with({.kind = control::Cause::Kind::aborted,
                                       .culprits = {},
                                       .sequence = 0,
                                       .text = "this process has left the job (finalize)"});
  }
  run_callbacks(guard);
  if (forked_) return;
  control_->leave();
  parts_.transport->close(clock().now() + goodbye_limit);
  if (parts_.recorder) {
    parts_.recorder->note_life(record::Life::left);
    parts_.recorder->answers().stop();
  }
  has_left_ = true;
  if (is_alone) {
    leaves_alone_ = LeavesAlone::left;
    leaves_alone_.notify_all();
  }
}

void Runtime::interrupt_leaving() {
  const Guard guard(mutex_);
  for (const auto& [id, group] : directory_.groups()) group->parts().failure.interrupt_all();
}

// The others learn at once in which calls this rank takes part, and wait for those only. Then these calls end, by their deadlines at the
// latest; what was sent is on its way; and every rank with a link to this one has its goodbye. As bytes keep their order on each link, no
// rank then takes the end of the process for a loss.
void Runtime::say_goodbye() {
  std::vector<std::shared_ptr<GroupCore>> sound;  // a thread that ends meanwhile may hold the last handle of one
  {
    const Guard guard(mutex_);
    for (const auto& [id, group] : directory_.groups()) {
      const GroupFailure& failure = std::as_const(*group).parts().failure;
      if (failure.is_broken() && !failure.was_told()) directory_.closed().note_late(failure.difference());
      if (failure.is_broken()) continue;
      if (auto kept = group->weak_from_this().lock()) sound.push_back(std::move(kept));
      group->parts().failure.withdraw_receives();
    }
    parts_.transport->refuse_messages();
    control_->announce_leave(directory_.positions());
  }
  if (!parts_.threaded || parts_.transport->size() == 1) return;
  drive([&] { return operation_count_ == 0; }, TimePoint::max());
  const auto is_told = [&] { return parts_.transport->is_flushed() && control_->may_leave(); };
  drive(is_told, TimePoint::max());
  // Those that made other calls are asked which, as long as they are there.
  drive([&] { return directory_.closed().has_late_error() || !directory_.pursue_differences(); }, TimePoint::max());
  const Guard guard(mutex_);
  ClosedGroups& closed = directory_.closed();
  for (const auto& group : sound) {
    closed.note_late(group->parts().failure.difference());
    if (const auto difference = group->parts().agreement.what_differed())
      closed.note_late(group->facts(), difference->otherwise);
  }
  closed.note_all_late();
}

void Runtime::abandon() {
  forked_ = true;
  mutex_.reset_in_child();
  kept_in_child_ = shared_from_this();  // never destroyed here: its thread lives in the parent
  (void)news_.release();
  parts_.transport->abandon();
  if (parts_.recorder) parts_.recorder->abandon();
}

std::string Runtime::host_of(int world_rank) const {
  const auto index = static_cast<std::size_t>(world_rank);
  return world_rank >= 0 && index < parts_.hosts.size() ? parts_.hosts[index] : std::string();
}

int Runtime::node_of(int world_rank) const {
  const auto index = static_cast<std::size_t>(world_rank);
  return index < parts_.node_of.size() ? parts_.node_of[index] : 0;
}

void Runtime::keep(std::shared_ptr<IntranodeExecutor> intranode) {
  if (forked_) return;
  const Guard guard(mutex_);
  intranode->depart();
  std::erase_if(kept_, [](const auto& each) { return each->is_vacant(); });
  if (!intranode->is_vacant()) kept_.push_back(std::move(intranode));
}

std::shared_ptr<std::byte> Runtime::take_memory(std::size_t bytes) {
  check_alive();
  if (parts_.memory == nullptr) {
    constexpr std::align_val_t alignment{128};
    auto* const block = static_cast<std::byte*>(::operator new(std::max<std::size_t>(bytes, 1), alignment));
    return {block, [](std::byte* data) { ::operator delete(data, alignment); }};
  }
  {
    const Guard guard(mutex_);
    directory_.confirm_ended();
  }
  return parts_.memory->take(bytes);
}

}  // namespace tutti
