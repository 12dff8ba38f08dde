// pmi_board.cpp: a record in the launcher's PMI key-value space.
// SPDX-License-Identifier: Apache-2.0
//
// A process that said "init" and leaves without "finalize" counts as crashed, and the launcher ends the others; after
// "finalize" the descriptor is of no more use, to MPI_Init neither. So the sign-off comes last, when the process exits,
// and is left to MPI where the program uses MPI.
#include <fmt/format.h>
#include <unistd.h>

#include <mutex>

#include <tutti/error.hpp>

#include "rendezvous/boards.hpp"
#include "rendezvous/mpi_presence.hpp"
#include "rendezvous/pmi.hpp"

namespace tutti::rendezvous {
namespace {

// The descriptor belongs to the process, and so does the conversation over it: the one piece of state that cannot be
// passed in.
class ProcessConversation {
 public:
  static ProcessConversation& instance() {
    static ProcessConversation conversation;
    return conversation;
  }

  PmiClient& client(int fd, TimePoint deadline) {
    const std::lock_guard lock(mutex_);
    if (process_ != getpid()) {
      client_ = PmiClient(fd);
      if (!mpi_was_initialized()) client_.init(deadline);
      process_ = getpid();
    }
    return client_;
  }

  ~ProcessConversation() {
    if (process_ != getpid() || mpi_was_initialized()) return;
    try {
      client_.finalize(deadline_after(std::chrono::steady_clock::now(), std::chrono::seconds(2)));
    } catch (const Error&) {
      // The launcher is gone: nobody is left to tell.
    }
  }

 private:
  std::mutex mutex_;
  PmiClient client_{-1};
  pid_t process_ = -1;  // a forked child must not sign off for its parent
};

class PmiBoard : public Board {
 public:
  PmiBoard(int fd, BoardKey key) : fd_(fd), key_(std::move(key)) {}

  void post(const RendezvousRecord& record, TimePoint deadline) override {
    PmiClient& client = ProcessConversation::instance().client(fd_, deadline);
    client.put(key_.key, record.text(), deadline);
    client.barrier(deadline);
  }

  RendezvousRecord fetch(TimePoint deadline) override {
    PmiClient& client = ProcessConversation::instance().client(fd_, deadline);
    if (!fenced_) client.barrier(deadline);
    fenced_ = true;
    if (auto record = RendezvousRecord::parse(client.get(key_.key, deadline))) return *std::move(record);
    throw RendezvousError(
        fmt::format("what rank 0 left in the launcher's key-value space under \"{}\" is no note of this "
                    "version; check that all ranks use the same Tutti",
                    key_.key));
  }

  [[nodiscard]] bool keeps_secrets() const override { return true; }
  [[nodiscard]] std::string describe() const override { return "PMI's key-value space"; }

 private:
  int fd_;
  BoardKey key_;
  bool fenced_ = false;
};

}  // namespace

std::unique_ptr<Board> make_pmi_board(int fd, BoardKey key) { return std::make_unique<PmiBoard>(fd, std::move(key)); }

}  // namespace tutti::rendezvous
