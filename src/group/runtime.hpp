// runtime.hpp: one rank's part in a job: its groups, its progress, and how it leaves.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "group/directory.hpp"
#include "group/launcher_news.hpp"
#include "group/progress.hpp"

namespace tutti {

class IntranodeExecutor;

/// The process ends with status 1, whatever status its program asks for: an error was found too late for an exception.
void fail_at_exit();

class Runtime final : public ProgressLoop {
 public:
  using Parts = RuntimeParts;
  /// `start` once it is owned by a shared_ptr.
  explicit Runtime(Parts parts) : ProgressLoop(std::move(parts)), directory_(*this) {}
  ~Runtime() override;
  void start();

  [[nodiscard]] GroupDirectory& directory() { return directory_; }
  [[nodiscard]] const GroupDirectory& directory() const { return directory_; }

  void leave() override;
  /// Gives up the calls that leave(), on another thread, waits for.
  void interrupt_leaving();
  /// From exit(): what went wrong is logged. From now on no call returns or throws on another thread, which could not know what to do
  /// with that: what the thread uses may be gone, and an exception that it does not expect would abort the process.
  void leave_at_exit();
  /// What was found wrong while this rank left: calls that differed and were not noticed before. Null: nothing.
  [[nodiscard]] std::exception_ptr take_leave_error() { return directory_.closed().take_late_error(); }
  [[nodiscard]] bool has_left() const { return has_left_.load(std::memory_order_acquire); }
  /// It is leaving, and waits for what was posted.
  [[nodiscard]] bool drains() const { return is_leaving() && parts_.threaded; }
  /// In a forked child: closes what was inherited, but destroys nothing: much of it lies in memory that the parent uses. A fork waits for
  /// no thread of the parent, so this reads nothing that those threads change.
  void abandon();

  /// Memory that the local peers reach, where there are any.
  [[nodiscard]] std::shared_ptr<std::byte> take_memory(std::size_t bytes);
  [[nodiscard]] std::string host_of(int world_rank) const;
  [[nodiscard]] int node_of(int world_rank) const;
  /// An id for a group of this rank alone, which nobody else needs to know.
  [[nodiscard]] std::uint64_t private_id() { return next_private_id_++; }
  /// Keeps what local peers may still read, until they no longer do or this rank leaves.
  void keep(std::shared_ptr<IntranodeExecutor> intranode);

 private:
  void say_leave_error();
  void say_goodbye();

  void process_ended(int rank, std::string_view how);

  GroupDirectory directory_;
  std::unique_ptr<LauncherNews> news_;
  // The progress thread leaves where a callback has dropped the last handle: exit() waits for it.
  enum class LeavesAlone : std::uint8_t { no, leaving, left };
  std::atomic<LeavesAlone> leaves_alone_{LeavesAlone::no};
  std::vector<std::shared_ptr<IntranodeExecutor>> kept_;
  std::atomic<std::uint64_t> next_private_id_{std::uint64_t{1} << 63};
  std::atomic<bool> has_left_{false};
  std::shared_ptr<ProgressLoop> kept_in_child_;
};

}  // namespace tutti
