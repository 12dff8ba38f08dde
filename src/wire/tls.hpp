// tls.hpp: TLS 1.3 over a socket, between two processes that share a key. There are no certificates.
// SPDX-License-Identifier: Apache-2.0
//
// The key is an external pre-shared key of this connection alone (RFC 8446, 2.2), used with a Diffie-Hellman exchange: who learns the
// key later still cannot read what was recorded. A connection ends as a socket's does. What it carried tells whether that was its
// end, so no closing alert is sent.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "wire/socket.hpp"

struct ssl_st;

namespace tutti::wire {

inline constexpr std::size_t tls_key_bytes = 32;
// Records that are sealed with one key before the next one is derived from it: AES-GCM allows 2^24.5 (RFC 8446, 5.5).
inline constexpr std::uint64_t tls_records_per_key = std::uint64_t{1} << 22;

// Never blocks. Reads and writes as read_some and write_some do, but takes what it is given to write before the socket does: what is
// sealed and not sent yet waits here, and nothing more is taken until it is sent.
class TlsSession {
 public:
  enum class Role : std::uint8_t { client, server };

  // The socket stays the caller's, and must outlive this.
  TlsSession(int socket, Role role, std::span<const std::byte, tls_key_bytes> key,
             std::uint64_t records_per_key = tls_records_per_key);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // Goes on with the handshake as far as the socket lets it; moved once it is done.
  Transfer shake_hands();

  // Fills all of `into` if there is as much: fewer bytes mean that neither the socket nor this object holds more.
  Transfer read(std::span<const iovec> into);
  // Without pieces it sends what waits; would_block while some still does.
  Transfer write(std::span<const iovec> from);
  [[nodiscard]] bool has_unsent() const { return sent_ < sealed_.size(); }
  // Bytes that a read gives although the socket has none.
  [[nodiscard]] bool holds_input() const;

 private:
  friend struct TlsCallbacks;
  struct Free {
    void operator()(ssl_st* ssl) const;
  };

  void seal(const std::byte* bytes, std::size_t count);
  Transfer send_sealed();
  Transfer settle(int result);

  int socket_;
  std::array<std::byte, tls_key_bytes> key_;
  std::uint64_t records_per_key_, records_ = 0;
  std::vector<std::byte> sealed_;  // records that wait for the socket, from sent_ on
  std::size_t sent_ = 0;
  std::optional<Transfer> ended_;  // how the socket ended, or what was wrong with what came from it
  std::unique_ptr<ssl_st, Free> ssl_;
};

}  // namespace tutti::wire
