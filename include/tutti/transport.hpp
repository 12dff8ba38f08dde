// transport.hpp: messages between ranks. A seam: tcp, simulated, later ucx and shared memory. Unstable.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/clock.hpp>
#include <tutti/request.hpp>

namespace tutti {

/// What travels ahead of a message's bytes.
struct Envelope {
  std::uint64_t group = 0;  // id of the group
  std::uint32_t epoch = 0;  // of the group: messages of a former life are dropped
  std::uint32_t tag = 0;  // collective: the message's number in the plan for this pair; point to point: the user's tag
  std::uint32_t phase = 0;    // collective: part of a call with several (size exchange, sub-requests); otherwise the
                              // array's number of axes and kind (messages/message_form.hpp)
  std::uint32_t channel = 0;  // 0: collective; 1: point to point; 2: point to point, of the library's own
  Signature signature{};      // of the call; point to point: verb, dtype and count of the message
  std::int64_t bytes = 0;
};

/// How a receive finds its message: collectives by (peer, group, epoch, sequence, phase, tag), exactly one message each;
/// point to point by (peer or any, group, epoch, tag or any), in the order in which they were sent.
inline constexpr int any_peer = -1;

/// The lengths of an array's axes, where the envelope has no room for them (messages/message_form.hpp).
struct MessageShape {
  std::int32_t axes = 0;
  std::array<std::int64_t, View::max_axes> lengths{};  // the first `axes` of them
};

struct Transfer;

/// Whom a transfer tells that it is no longer pending. Called under the progress lock, from send(), recv() or poll(): it takes note,
/// and does nothing with the transport.
class TransferWatcher {
 public:
  virtual void is_over(Transfer& transfer) = 0;

 protected:
  ~TransferWatcher() = default;
};

/// Gives memory to a receive that learns from its message how much it needs.
class TransferRoom {
 public:
  /// `receive` has the message's envelope, source and shape. Called under the progress lock, as a TransferWatcher is. Throws: the
  /// receive fails, and its message is dropped.
  virtual std::byte* room_for(Transfer& receive) = 0;

 protected:
  ~TransferRoom() = default;
};

/// One send or receive under way. Its owner keeps it alive and in place until it is no longer pending, or cancels it;
/// the transport links it in, so that posting allocates nothing.
struct Transfer {
  enum class State : std::uint8_t { idle, pending, done, failed };
  Envelope envelope{};              // send: what to say; receive: what to match, and afterwards what arrived
  int peer = any_peer;              // rank in the world; any_peer becomes the source when a message matches
  const std::byte* from = nullptr;  // send
  std::byte* to = nullptr;          // receive: room for envelope.bytes; a point-to-point message may be shorter
  MessageShape* shape = nullptr;    // send: to be told; receive: filled in, where the envelope does not say it
  TransferRoom* room = nullptr;     // receive: asked for the memory when a message matches
  bool probes = false;              // receive: finds a message, and reserves it for accept()
  State state = State::idle;
  /// When failed: why the message that matched was not taken (it is gone, and no memory was touched). asked_back: a send was
  /// withdrawn; taken_back: the sender has withdrawn what a probe had found; receiver_left: without having received it.
  enum class Refusal : std::uint8_t { none, too_long, other_dtype, no_memory, asked_back, taken_back, receiver_left };
  Refusal refusal = Refusal::none;
  std::string error{};                 // when failed: why
  TransferWatcher* watcher = nullptr;  // told once, when it is done or has failed; not when it is cancelled
  std::int64_t order = 0;              // order, links and handle belong to the transport
  Transfer* next = nullptr;
  Transfer* previous = nullptr;
  void* handle = nullptr;
};

/// Whom a transport tells what happened. Called from poll() only.
class TransportListener {
 public:
  virtual ~TransportListener() = default;
  enum class Verdict { keep, drop };
  /// A message header came in, expected or not, before it is matched. `drop` discards the message.
  virtual Verdict arrived(int peer, const Envelope& envelope) = 0;
  /// A small message of the control network.
  virtual void control(int peer, std::span<const std::byte> message) = 0;
  /// The link to a peer broke without a goodbye. Told once per peer.
  virtual void lost(int peer, std::string_view reason) = 0;
  /// No connection to a peer was ever made, and the last attempt failed. That says less than a link that broke: the peer may have
  /// ended before, well or not. Told once per peer, instead of lost().
  virtual void unreachable(int peer, std::string_view reason) { lost(peer, reason); }
  /// The peer said goodbye on every link: all that it sent has come in, and nothing follows. Told once per peer.
  virtual void parted(int /*peer*/) {}
};

/// Moves messages between the ranks of a world. Never blocks, but for wait(). One thread at a time (the progress lock),
/// except wait() and wake(), which any thread may call while another one polls.
///
///  1. Messages of one (sender, group, tag) never overtake each other, over several streams too.
///  2. What an unexpected sender can pile up at a receiver is bounded (credits); nothing posted later deadlocks because of it.
///  3. After cancel() returns, and after a transfer is done or failed, its memory is not touched any more.
///  4. Control messages do not queue behind data.
class Transport {
 public:
  virtual ~Transport() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;  // "tcp"
  /// Of what carries messages to and from this rank.
  [[nodiscard]] virtual std::string_view link_name(int /*peer*/) const { return name(); }
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  virtual void listen(TransportListener* listener) = 0;  // set once, before the first poll

  virtual void send(Transfer& transfer) = 0;  // idle → pending (or done at once)
  virtual void recv(Transfer& transfer) = 0;
  /// A point-to-point receive that may be done at once: false if its message does not come for as long as it takes to look
  /// `looks` times, or if others are under way. Nothing has happened then, and recv() goes the usual way.
  virtual bool try_recv(Transfer& /*transfer*/, int /*looks*/) { return false; }
  virtual void cancel(Transfer& transfer) = 0;  // → idle; what arrives for it later is discarded
  /// Takes back a pending transfer, as if it had never been: a receive that no message has reached, a send that its peer knows nothing
  /// of. → idle. False: too late. A send that its peer has only heard of is asked back: it ends as usual, or fails with asked_back.
  virtual bool withdraw(Transfer& transfer) = 0;
  /// A receive that is pending or done → idle, and the message that it has found is not lost: the next receive like it gets that
  /// message first. Bytes that are still to come arrive in memory of the transport. Throws std::bad_alloc, and has done nothing then.
  virtual void give_back(Transfer& receive) = 0;
  /// A message that has come in, and that this receive would get, is reserved: `probe` (probes is set) is done. False: there is none.
  /// recv() of such a probe waits for one. Until accept() or release(), which end the reservation, the probe stays where it is; it
  /// fails if its message can no longer be had.
  virtual bool reserve(Transfer& probe) = 0;
  /// `receive` gets the message that the probe has found: idle → pending, done or failed.
  virtual void accept(Transfer& probe, Transfer& receive) = 0;
  /// The message is for others again, in its place among those that came.
  virtual void release(Transfer& probe) = 0;
  /// Forgets what arrived for this group and was never received (a call that was given up, a group that is gone).
  virtual void forget(std::uint64_t group, std::uint64_t up_to_sequence) = 0;

  /// This rank leaves: no message between two ranks is received any more, and senders that wait for that learn it. Collectives go on.
  virtual void refuse_messages() {}

  /// For reports: messages from one rank to another in this group that have come in and that no receive has taken, oldest first.
  struct Unreceived {
    int peer = 0;
    std::uint32_t tag = 0;
  };
  [[nodiscard]] virtual std::vector<Unreceived> unreceived(std::uint64_t /*group*/, std::uint32_t /*epoch*/) const {
    return {};
  }

  /// A small message (≤ 64 KiB) to the peer's listener. Best effort: a broken link shows as lost().
  virtual void post(int peer, std::span<const std::byte> message) = 0;
  /// Opens the link for control messages now, so that a loss of the peer is noticed.
  virtual void attach(int peer) = 0;

  /// Makes progress; true if anything moved.
  virtual bool poll() = 0;
  /// Sleeps until something may have happened, wake() is called, or `until`; consumes nothing. A rank that is busy elsewhere
  /// listens to the control network only, so that arriving data does not wake a thread for nothing.
  enum class Events { control, all };
  virtual void wait(TimePoint until, Events events) = 0;
  virtual void wake() = 0;  // from any thread
  /// Whether wait() ends when something under way moves on. Not so for what passes through shared memory: there the
  /// ranks ring each other's bells (shm/doorbell.hpp).
  [[nodiscard]] virtual bool busy_outside() const { return true; }
  /// Whether wait() misses what moves on, because a library moves it that has to be asked (Link::must_be_polled).
  [[nodiscard]] virtual bool must_be_polled() const { return false; }
  /// Whether anything at all came in from this peer since the last time this was asked: a sign of life.
  virtual bool heard_from(int /*peer*/) { return false; }
  /// Whether all that was sent has left this rank and every connection that was begun is made, so that close() can say goodbye on
  /// each. Poll until it holds before close(): a peer whose connection ends without a goodbye sees a loss.
  [[nodiscard]] virtual bool is_flushed() const { return true; }
  /// This peer is lost: neither is_flushed() nor close() waits until it takes what was sent to it.
  virtual void give_up(int /*peer*/) {}
  /// Says goodbye on every link and closes them; the peers do not see a loss.
  virtual void close(TimePoint deadline) = 0;
  /// In a forked child: closes the inherited descriptors without a word to anyone. Threads of the parent's may have been inside when another
  /// one forked, so what they change may be half changed, and locks may be held for ever. Only destruction may follow.
  virtual void abandon() = 0;
};

}  // namespace tutti
