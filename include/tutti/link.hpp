// link.hpp: frames between two ranks. A seam: tcp, rings in shared memory, simulated, and yours. Unstable.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <tutti/clock.hpp>
#include <tutti/transport.hpp>

namespace tutti {

inline constexpr std::uint8_t frame_type_max = 15;
inline constexpr std::size_t frame_head_bytes_max = 248;

/// What a link carries: a head of a few words and a payload. What they mean is known to the message protocol (src/messages) alone.
struct Frame {
  std::uint8_t type = 0;  // 1 to frame_type_max
  std::span<const std::byte> head{};
  std::span<const std::byte> payload{};
};

/// Of its sender's credit, a message costs its bytes and something for its entry, so that many small ones are bounded too.
inline constexpr std::int64_t message_cost_bytes = 256;
constexpr std::int64_t credit_cost(std::int64_t bytes) { return bytes + message_cost_bytes; }

/// In which order frames travel.
enum class FrameOrder : std::uint8_t {
  message,  // in the order in which they were sent
  reply,    // likewise among themselves: answers to frames of the peer
  bulk,     // in any order: fragments of large messages
};

/// Names memory that a peer may read. The bytes mean something to the link alone; none: the link cannot expose this memory.
struct RemoteKey {
  static constexpr std::size_t bytes_max = 160;
  std::array<std::byte, bytes_max> bytes{};
  std::size_t size = 0;
};

/// A read of a peer's memory under way. Its owner keeps it in place until it is over or cancelled.
struct RemoteGet {
  int peer = -1;
  RemoteKey key{};
  std::byte* to = nullptr;
  std::int64_t bytes = 0;
  std::int64_t done_bytes = 0;
  void* handle = nullptr;  // the link's
};

enum class GetStatus : std::uint8_t {
  moving,         // call again
  complete,       // all bytes are here, and the memory was still exposed after the last one was read
  withdrawn,      // the owner has revoked the key: what was read is worth nothing
  not_permitted,  // this memory cannot be read: have it sent
  unreadable,     // the owner exposed memory that it does not have
  peer_gone,      // the owner seems to have ended; its loss will be reported
};

/// The side of a link that its user implements. Called from poll(), peek(), drain() and close() of the link.
/// An Error thrown by frame(), frame_begins() or frame_ends() says that the peer sent nonsense: the link reports the peer lost.
class LinkListener {
 public:
  /// A whole frame. Head and payload may lie in memory that the peer can still write: copy, then check the copy.
  virtual void frame(int peer, const Frame& frame) = 0;
  /// A frame whose payload (not in `frame`) is still coming in. Returns the number by which the link refers to it.
  virtual std::uint64_t frame_begins(int peer, const Frame& frame, std::int64_t payload_bytes) = 0;
  /// Where the payload's first byte belongs; nullptr: throw the payload away. Ask again before every write, because a cancel takes
  /// the memory back.
  virtual std::byte* landing(std::uint64_t number) = 0;
  virtual void frame_ends(std::uint64_t number) = 0;
  /// A frame that send() had queued is written: its payload's memory is no longer used. Never from inside that send().
  virtual void sent(void* owner, std::int64_t payload_bytes) = 0;

  /// A message of the control network (Network only).
  virtual void control(int peer, std::span<const std::byte> message) = 0;
  /// As in TransportListener; each at most once per peer and link.
  virtual void lost(int peer, std::string_view reason) = 0;
  virtual void unreachable(int peer, std::string_view reason) = 0;
  virtual void parted(int peer) = 0;

 protected:
  ~LinkListener() = default;
};

/// Moves frames between this rank and others. Never blocks. One thread at a time (the progress lock).
///
///  1. A frame that was taken arrives once and whole, unless it is withdrawn or its peer is lost. Frames of one order and peer arrive
///     in that order (bulk: in any).
///  2. A link that has no room says so, and takes the frame later: when the peer has read, poll() makes room.
///  3. A link believes nothing that a peer wrote: lengths are checked before they are used. Over a network, a peer has proved that it
///     knows the job's secret before anything else of it is parsed.
///  4. When lost(), unreachable() or parted() is called, the link uses no memory of frames to that peer any more, and no frame of that
///     peer is in the middle of landing. What the peer sent before it parted has been delivered.
///  5. get() reports `complete` only if the key had not been revoked when the last byte was read. revoke() never waits.
class Link {
 public:
  virtual ~Link() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;

  /// The same on all ranks of a world.
  struct Limits {
    std::int64_t eager_bytes_max = 0;  // larger messages wait for their receive
    std::int64_t credit_bytes =
        0;  // what one peer may pile up at another before it is received: two eager messages at least
    std::int64_t fragment_bytes_max = 0;  // of a large message; send() takes payloads of this and of eager_bytes_max
    bool bulk_has_own_channel = false;    // frames of the order `bulk` do not take room from others
    std::int64_t get_bytes_per_poll = 1 << 20;
  };
  [[nodiscard]] virtual Limits limits() const = 0;
  virtual void listen(LinkListener* listener) = 0;  // set once, before the first poll

  enum class Taken : std::uint8_t {
    no_room,
    copied,  // the payload's memory is free
    queued,  // the payload is read later; LinkListener::sent() is called with `owner`
  };
  /// Error if frames to this peer can never be sent.
  virtual Taken send(int peer, FrameOrder order, const Frame& frame, void* owner) = 0;
  /// Takes the payload memory of the owner's queued frames back. Frames that were not begun vanish, the rest of one that was begun is
  /// copied; sent() is called for neither. Returns how many vanished.
  virtual std::size_t withdraw(int /*peer*/, const void* /*owner*/) { return 0; }
  /// Large messages to this peer were announced: bulk frames will follow.
  virtual void prepare_bulk(int /*peer*/) {}

  /// Takes what came in to the listener, and writes what was queued. True if anything moved.
  virtual bool poll() = 0;
  /// The peer's next frame, if it comes within so many looks and lies in memory as a whole; pop() takes it. For receives that need
  /// no matching.
  virtual bool peek(int /*peer*/, int /*spins*/, Frame& /*frame*/) { return false; }
  virtual void pop(int /*peer*/) {}
  /// Another link lost the peer, or heard its goodbye: delivers what it had sent here before; then nothing more is heard or sent.
  virtual void drain(int /*peer*/) {}
  virtual void disconnect(int /*peer*/) {}
  /// Whether the caller of poll() is about to sleep on a doorbell, so that this poll must miss nothing.
  [[nodiscard]] virtual bool is_last_poll_before_sleep() const { return false; }
  /// Whether nothing wakes a thread when frames come, because a library moves them that has to be asked. A thread that waits then sleeps
  /// for moments only.
  [[nodiscard]] virtual bool must_be_polled() const { return false; }
  /// Whether all queued frames have left this rank. Of a link beside a network: whether the goodbye that the network says cannot overtake
  /// them.
  [[nodiscard]] virtual bool is_flushed() const { return true; }
  /// This peer is lost: neither is_flushed() nor a network's close() waits for it.
  virtual void give_up(int /*peer*/) {}
  /// In a forked child: gives up what was inherited, without a word to anyone. See Transport::abandon.
  virtual void abandon() = 0;

  // Reading a peer's memory, where the link can.

  /// Lets the peers of this link read `memory` until the key is revoked.
  virtual RemoteKey expose(std::span<const std::byte> /*memory*/) { return {}; }
  /// From now on no get() of this key completes. Call it before the memory changes.
  virtual void revoke(const RemoteKey& /*key*/) {}
  /// Whether so many bytes of that memory should be read, rather than sent by the peer.
  [[nodiscard]] virtual bool can_get(int /*peer*/, const RemoteKey& /*key*/, std::int64_t /*bytes*/) { return false; }
  /// False if the key is known to be revoked. An Error if it cannot be a key for so many bytes.
  [[nodiscard]] virtual bool is_exposed(int /*peer*/, const RemoteKey& /*key*/, std::int64_t /*bytes*/) { return true; }
  /// Reads on, about `bytes_max` at most, or looks whether a read that is under way has moved.
  virtual GetStatus get(RemoteGet& /*get*/, std::int64_t /*bytes_max*/) { return GetStatus::not_permitted; }
  /// After this, `get.to` is not written.
  virtual void cancel_get(RemoteGet& /*get*/) {}
};

/// A link to all ranks of the world that also carries control messages, notices which peers end, and can sleep.
/// wait() and wake() may be called by any thread while another one polls.
class Network : public Link {
 public:
  /// A small message (≤ control_bytes_max) that does not queue behind frames. Dropped where the peer is gone.
  static constexpr std::size_t control_bytes_max = 64 << 10;
  virtual void post(int peer, std::span<const std::byte> message) = 0;
  /// Connects now, so that the end of the peer is noticed.
  virtual void attach(int peer) = 0;
  /// Whether anything came in from this peer since the last time this was asked.
  virtual bool heard_from(int peer) = 0;
  /// Sleeps until something may have happened, wake() is called, or `until`. False where nothing happens while this thread waits (a
  /// simulation).
  virtual bool wait(TimePoint until, Transport::Events events) = 0;
  virtual void wake() = 0;
  /// Says goodbye, behind everything that was sent, to all peers, and closes.
  virtual void close(TimePoint deadline) = 0;
};

}  // namespace tutti
