// process.hpp: this process in MPI: initialised once, left once, with the communicators of all its groups.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <tutti/backend.hpp>

#include "base/log.hpp"
#include "mpi/communicator.hpp"
#include "mpi/library.hpp"

namespace tutti::mpi {

/// Where a job's ranks are in MPI.
struct JobFacts {
  std::shared_ptr<const Library> library{};
  const TuttiMpiCommunicator* base = nullptr;
  std::vector<int> rank_in_base{};  // of each rank in the world
  int tag_max = 0;
  std::int64_t segment_bytes = 0;  // 0: by the number of ranks of a group
};

/// There is one MPI in a process, and it can be initialised once: hence one of these, which is never destroyed.
class Process {
 public:
  static Process& self();

  /// Initialises MPI, unless the program has. Then it is finalised when the process ends, by the side that initialised it. Throws Error where the
  /// program has finalised MPI already, or has not asked for MPI_THREAD_MULTIPLE.
  void enter(const std::shared_ptr<const Library>& library, const Log& log);

  /// The communicator of the group; the same for all backends that the group has had. Begins to make it if there is none.
  std::shared_ptr<Communicator> communicator_of(const JobFacts& job, const GroupFacts& facts);
  /// Goes on with the communicators whose groups are gone.
  void poll_closing();

 private:
  using Key = std::pair<std::uint64_t, std::uint32_t>;  // id and epoch of the group

  void close(std::unique_ptr<Communicator> communicator);
  [[nodiscard]] bool is_finalized() const;
  /// From exit(), if MPI was initialised here.
  static void leave_at_exit();
  static void before_finalize();
  /// Closes the communicators of all groups, together with the other ranks. False: some rank did not come, or a call was given up.
  bool close_all();

  std::mutex mutex_;
  std::shared_ptr<const Library> library_;
  Log log_;
  std::map<Key, std::weak_ptr<Communicator>> communicators_;
  std::vector<std::unique_ptr<Communicator>> closing_;
  std::vector<std::shared_ptr<Communicator>> living_;  // closed while their groups live on
};

}  // namespace tutti::mpi
