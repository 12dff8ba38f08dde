// communicator.hpp: a communicator of MPI for one group, and the rounds by which its ranks agree.
// SPDX-License-Identifier: Apache-2.0
//
// MPI makes communicators by calls that block until all members have made them; so a thread of its own makes that call, and the group's
// calls wait until it is done, as they wait for anything else. One thread at a time uses a communicator (the progress lock).
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "engine/aligned_buffer.hpp"
#include "mpi/call_handle.hpp"
#include "mpi/library.hpp"
#include "mpi/round.hpp"
#include "mpi/segments.hpp"

namespace tutti::mpi {

/// This thread is inside MPI, which may end the process there by exit(): it holds locks then that the functions which exit() calls would
/// wait for. They can ask.
class InsideMpi {
 public:
  InsideMpi() { is_inside_ = true; }
  ~InsideMpi() { is_inside_ = false; }
  InsideMpi(const InsideMpi&) = delete;
  InsideMpi& operator=(const InsideMpi&) = delete;
  [[nodiscard]] static bool is_inside() { return is_inside_; }

 private:
  static inline thread_local bool is_inside_ = false;
};

/// A collective that MPI may still work on, with the memory that it works on and the arrays of counts that it reads until the call has ended.
struct InFlight {
  CallHandle call{};
  AlignedBuffer send{}, recv{};
  Segment segment{};
  bool is_under_way = false;
};

class Communicator {
 public:
  struct Parts {
    std::shared_ptr<const Library> library{};
    const TuttiMpiCommunicator* base = nullptr;  // never freed
    std::vector<int> ranks{};                    // of `base`
    int tag = 0;                                 // tells creations that are under way at the same time apart
  };
  /// Begins to make it.
  explicit Communicator(Parts parts);
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  /// Frees nothing in MPI: see closes().
  ~Communicator();

  [[nodiscard]] const Library& library() const { return *parts_.library; }
  /// Whether it can be used. Error if MPI could not make it.
  bool is_open();
  [[nodiscard]] TuttiMpiCommunicator* handle() const { return handle_; }

  /// This rank's next round, unless one is under way.
  void begin_round(const RoundRecord& record);
  [[nodiscard]] bool is_in_round() const { return rounds_->is_under_way(); }
  /// Goes on with the round; true once it is over, and result() is what the ranks brought, combined.
  bool ends_round();
  /// Starts a collective, and asks whether it has ended. Error if MPI fails; `what` is said then.
  void start(InFlight& flight, const TuttiMpiCollective& collective, std::string_view what);
  bool ends(InFlight& flight, std::string_view what);
  [[nodiscard]] const RoundRecord& result() const { return rounds_->result(); }

  /// MPI may still use this memory, and cannot be told not to: it stays until MPI is done with it. The communicator serves no further call.
  void keep(std::vector<InFlight>& calls);
  /// A call was given up in a round. The ranks may still come together again.
  void note_given_up() { is_given_up_ = true; }
  void note_agreed() { is_given_up_ = false; }
  /// Whether the last call was given up: its peers may be gone.
  [[nodiscard]] bool is_given_up() const { return is_given_up_ || !kept_.empty(); }

  /// After the last call. Takes part in a last round, and frees the communicator when all members have; true once it is freed.
  bool closes();

 private:
  struct Opening;

  /// Whether all calls that were given up have ended in MPI, because all ranks had made them.
  bool ends_kept();

  Parts parts_;
  std::shared_ptr<Opening> opening_;
  TuttiMpiCommunicator* handle_ = nullptr;
  std::unique_ptr<Rounds> rounds_;  // once it is open
  bool is_closing_ = false, is_closed_ = false, is_given_up_ = false;
  std::vector<InFlight> kept_;
};

}  // namespace tutti::mpi
