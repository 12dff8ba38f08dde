// backend.hpp: the seam for engines that carry out whole collectives: shared memory, plans over links, MPI. Unstable.
// SPDX-License-Identifier: Apache-2.0
//
// A backend turns a checked request into a PreparedCall: all that does not depend on the bytes is done once. The group keeps
// prepared calls and starts them again for every call of the same shape. docs/extending.md shows a backend from end to end.
//
// Thread rule: a backend and its prepared calls are used by one thread at a time (under the progress lock). Nothing may block.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/error.hpp>
#include <tutti/request.hpp>

namespace tutti {

class Transport;

/// The group that a backend serves, as one of its ranks sees it.
struct GroupFacts {
  int rank = 0;
  int size = 1;
  std::uint64_t id = 0;
  std::uint32_t epoch = 0;
  std::vector<int> world_of{};  // rank in the group → rank in the world
  std::vector<int> node_of{};   // node of each rank; empty: all on one

  /// The rank in the group of a rank in the world; −1: it is no member.
  [[nodiscard]] int rank_of(int world_rank) const {
    const auto found = std::find(world_of.begin(), world_of.end(), world_rank);
    return found == world_of.end() ? -1 : static_cast<int>(found - world_of.begin());
  }
};

/// How far a call has come, for error reports: "step 9 of 14, waiting for rank 5".
struct Progress {
  std::string how;  // "ring over tcp"
  int stage = 0;    // steps are counted within one: a call that has learned its sizes is farther than any that has not
  int step = 0;
  int step_count = 0;
  std::vector<int> waiting_for{};  // ranks in the group
};

/// Makes the output once its shape is known, where the caller could not: after a size exchange. The last argument is the root's
/// `Request::kind`.
using Allocate = decltype(Request::allocate);

/// The arrays of one start. They lie as those of the prepared request do; only the addresses differ.
struct Buffers {
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  const Allocate* allocate =
      nullptr;  // makes the output where its shape is learned from other ranks; null: `output` is it
};

/// A call of one shape, ready to be started as often as wanted, once at a time.
class PreparedCall {
 public:
  virtual ~PreparedCall() = default;
  /// Begins, and does what can be done at once. True: it is over, and the output is complete. Throws what went wrong.
  /// `signature` has the call's number; the ranks compare signatures on first contact.
  virtual bool start(const Buffers& buffers, const Signature& signature) = 0;
  /// Called once after start() returned true, after a full memory fence: wakes peers that sleep until this rank has done its part.
  virtual void wake_peers() {}
  /// Goes on. True once everything is done and the output is complete. Throws what went wrong.
  virtual bool poll() = 0;
  /// Gives up. When it returns, nothing touches the caller's memory any more. Allowed at any time, also after a throw.
  virtual void cancel() = 0;
  [[nodiscard]] virtual Progress progress() const = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// Why this backend cannot serve the request; nothing if it can. The same on all ranks, which then use the same backend.
  [[nodiscard]] virtual std::optional<std::string> refuses(const Request& request) const = 0;
  /// The request has been checked. What is prepared is destroyed before the backend.
  virtual std::unique_ptr<PreparedCall> prepare(const Request& request) = 0;

  /// Which calls of this backend may be under way at the same time. Calls whose memory overlaps never are.
  enum class Order : std::uint8_t {
    any,            // all of them
    as_numbered,    // all, if they are started in the order of their numbers; one that learns its sizes first, alone
    one_at_a_time,  // each is over before the next is started
  };
  [[nodiscard]] virtual Order order() const { return Order::any; }
  /// Whether poll() by itself brings a call to its end. Then a blocking call polls for a while before it is tracked and the
  /// thread may sleep. False where something else has to be polled, such as a transport.
  [[nodiscard]] virtual bool is_worth_spinning() const { return false; }
  /// Whether nothing wakes a thread when a call moves on, because a library moves it that has to be asked. A thread that waits then
  /// sleeps for moments only.
  [[nodiscard]] virtual bool must_be_polled() const { return false; }
};

/// Makes a backend for a new group; null: it does not serve this group. The same on all members.
using BackendFactory = std::function<std::unique_ptr<Backend>(const GroupFacts& facts, Transport& transport)>;

/// Thrown by start() and poll(): a peer takes part in this call with another signature.
class SignatureDiffers : public Error {
 public:
  SignatureDiffers(const std::string& text, int peer, const Signature& theirs)
      : Error(text), peer_(peer), theirs_(theirs) {}
  [[nodiscard]] int peer() const { return peer_; }  // rank in the group
  [[nodiscard]] const Signature& theirs() const { return theirs_; }

 private:
  int peer_;
  Signature theirs_;
};

/// Thrown by start() and poll(): a transfer went wrong: a message of the wrong size, or the link to its peer broke.
class TransferFailed : public Error {
 public:
  enum class Reason : std::uint8_t { size, link };
  TransferFailed(const std::string& text, int peer, Reason reason) : Error(text), peer_(peer), reason_(reason) {}
  [[nodiscard]] int peer() const { return peer_; }  // rank in the group
  [[nodiscard]] Reason reason() const { return reason_; }
  [[nodiscard]] bool does_not_fit() const { return reason_ == Reason::size; }

 private:
  int peer_;
  Reason reason_;
};

/// Thrown by start() and poll(): the library that carries the call lost a peer, or failed, and cannot say which peer it was. The group
/// finds out whether one is lost.
class CommunicationFailed : public Error {
 public:
  using Error::Error;
};

}  // namespace tutti
