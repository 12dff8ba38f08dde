// handshake.hpp: both sides of a connection prove that they know the job's secret, before anything else is parsed.
// SPDX-License-Identifier: Apache-2.0
//
//   initiator → acceptor   hello_i = magic | version | role | encryption | purpose_bytes | nonce | purpose      (109 bytes)
//   acceptor → initiator   hello_a | HMAC(secret, "acceptor"  | hello_i | hello_a)                 (109 + 32)
//   initiator → acceptor             HMAC(secret, "initiator" | hello_i | hello_a)                 (32)
//   acceptor → initiator   welcome                                                                 (1)
//
// 1. Every message has a fixed size; nothing that an unauthenticated peer sends decides how much is read or kept.
// 2. The MACs bind both roles, both nonces and both purposes: an answer cannot be replayed, reflected to the side it
//    came from, or used for another purpose.
// 3. Unauthenticated connections have a deadline, and a rank that got no time to answer may miss it. The welcome says that it came in
//    time: until then the initiator sends nothing that could be lost, and connects anew if the connection ends.
// 4. Both sides say whether they encrypt what follows. They must agree, and nobody between them can have them agree on less.
// 5. The first 10 bytes, magic and version, never change: two versions can tell each other which they are.
//
// A state machine over bytes, without I/O, so that a channel polls it and the fuzzer drives it.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <tutti/clock.hpp>

#include "base/environment.hpp"
#include "wire/secret.hpp"

namespace tutti::wire {

inline constexpr std::uint16_t protocol_version = 3;
// No acceptor closes a connection sooner because it is unauthenticated. An initiator whose connection ended later than that connects
// anew; one whose connection ended sooner reached another program, or a rank that is out of descriptors.
inline constexpr Duration unauthenticated_time_min = std::chrono::seconds(1);

// What guards the bytes after the handshake.
enum class Encryption : std::uint8_t { none = 0, tls = 1 };
// TUTTI_TLS.
Encryption encryption_from(const Environment& environment);

class Handshake {
 public:
  enum class Role : std::uint8_t { initiator = 1, acceptor = 2 };
  enum class State { running, done, failed };

  static constexpr std::size_t purpose_bytes_max = 64;
  static constexpr std::size_t nonce_bytes = 32;
  static constexpr std::size_t mac_bytes = 32;
  static constexpr std::size_t prefix_bytes = 10;
  static constexpr std::size_t hello_bytes = prefix_bytes + 3 + nonce_bytes + purpose_bytes_max;
  using Nonce = std::array<std::byte, nonce_bytes>;

  struct Setup {
    Role role;
    const Secret& secret;
    Encryption encryption = Encryption::none;
    std::string_view purpose = {};    // who I am and what for, at most 64 bytes; the other side gets it authenticated
    std::optional<Nonce> nonce = {};  // fixed by tests; otherwise from the kernel
    std::uint16_t version = protocol_version;
  };

  explicit Handshake(const Setup& setup);

  // How many bytes the next message still lacks: never read more from the connection, it belongs to what follows.
  [[nodiscard]] std::size_t wanted() const;
  // Takes at most wanted() bytes and returns how many.
  std::size_t feed(std::span<const std::byte> bytes);
  // What is to be sent, also after a failure (a version to complain about); sent() drops its front.
  [[nodiscard]] std::span<const std::byte> output() const { return std::span(output_).subspan(sent_, queued_ - sent_); }
  void sent(std::size_t bytes) { sent_ += bytes; }
  // The other side hung up, or said nothing in time. Fails unless all is done.
  void closed(std::string_view how);

  // Done: the other side is proven, and knows that we are.
  [[nodiscard]] State state() const;
  // Whether the other side greeted as a rank of some job does, in this or another version; noise and silence do not.
  [[nodiscard]] bool peer_spoke() const { return spoke_; }
  [[nodiscard]] bool peer_sent_anything() const { return received_ > 0; }
  // Whether the other side has proven that it knows the secret.
  [[nodiscard]] bool peer_is_proven() const { return expect_ == Expect::welcome || expect_ == Expect::nothing; }
  // After State::done: a key that only these two know, and that no other connection has.
  [[nodiscard]] std::array<std::byte, mac_bytes> channel_key() const { return proof_of("tutti channel key"); }
  // Who, what, why and what to check; after State::failed.
  [[nodiscard]] const std::string& error() const { return error_; }
  // After State::done.
  [[nodiscard]] std::string_view peer_purpose() const;

 private:
  enum class Expect { prefix, hello, proof, welcome, nothing };
  using Hello = std::array<std::byte, hello_bytes>;

  void check_prefix();
  void check_hello();
  void check_proof();
  void check_welcome();
  void send(std::span<const std::byte> bytes);
  void fail(std::string reason);
  void agree_on_encryption();
  [[nodiscard]] std::array<std::byte, mac_bytes> proof_of(std::string_view label) const;
  [[nodiscard]] std::size_t message_end() const;

  Role role_;
  Secret secret_;
  std::uint16_t version_;
  Expect expect_ = Expect::prefix;
  Hello mine_{};
  std::array<std::byte, hello_bytes + mac_bytes + 1> theirs_{};  // their hello, their proof, their welcome
  std::size_t received_ = 0;
  std::array<std::byte, hello_bytes + mac_bytes + 1> output_{};
  std::size_t queued_ = 0, sent_ = 0;
  bool failed_ = false, spoke_ = false;
  std::string error_;
};

}  // namespace tutti::wire
