// tls.cpp: OpenSSL's TLS over a socket that never blocks.
// SPDX-License-Identifier: Apache-2.0
#include "wire/tls.hpp"

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include <tutti/error.hpp>

namespace tutti::wire {

// What OpenSSL calls: it reads from the socket, writes to memory, and asks for the key.
struct TlsCallbacks {
  static TlsSession& session_of(BIO* bio) { return *static_cast<TlsSession*>(BIO_get_data(bio)); }

  static int read(BIO* bio, char* into, int bytes) {
    BIO_clear_retry_flags(bio);
    TlsSession& session = session_of(bio);
    if (session.ended_) return 0;
    const auto place = std::as_writable_bytes(std::span(into, static_cast<std::size_t>(bytes)));
    const Transfer moved = read_some(session.socket_, place);
    if (moved.moved()) return static_cast<int>(moved.bytes);
    if (moved.closed()) {
      session.ended_ = moved;
      return 0;
    }
    BIO_set_retry_read(bio);
    return -1;
  }

  static int write(BIO* bio, const char* from, int bytes) {
    BIO_clear_retry_flags(bio);
    const auto record = std::as_bytes(std::span(from, static_cast<std::size_t>(bytes)));
    std::vector<std::byte>& sealed = session_of(bio).sealed_;
    sealed.insert(sealed.end(), record.begin(), record.end());
    return bytes;
  }

  static long control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

  static SSL_SESSION* key_of(SSL* ssl) {
    const auto& key = static_cast<const TlsSession*>(SSL_get_app_data(ssl))->key_;
    SSL_SESSION* const made = SSL_SESSION_new();
    static constexpr unsigned char aes_128_gcm_sha256[] = {0x13, 0x01};
    if (made == nullptr ||
        SSL_SESSION_set1_master_key(made, reinterpret_cast<const unsigned char*>(key.data()), key.size()) != 1 ||
        SSL_SESSION_set_cipher(made, SSL_CIPHER_find(ssl, aes_128_gcm_sha256)) != 1 ||
        SSL_SESSION_set_protocol_version(made, TLS1_3_VERSION) != 1) {
      SSL_SESSION_free(made);
      return nullptr;
    }
    return made;
  }

  // Each connection has a key of its own: its name says nothing.
  static constexpr std::string_view key_name = "tutti";

  static int client_key(SSL* ssl, const EVP_MD*, const unsigned char** name, std::size_t* bytes, SSL_SESSION** key) {
    *name = reinterpret_cast<const unsigned char*>(key_name.data());
    *bytes = key_name.size();
    *key = key_of(ssl);
    return *key != nullptr ? 1 : 0;
  }
  static int server_key(SSL* ssl, const unsigned char* name, std::size_t bytes, SSL_SESSION** key) {
    const bool known = std::string_view(reinterpret_cast<const char*>(name), bytes) == key_name;
    *key = known ? key_of(ssl) : nullptr;
    return !known || *key != nullptr ? 1 : 0;
  }
};

namespace {

constexpr std::size_t record_bytes = SSL3_RT_MAX_PLAIN_LENGTH;
// Taken in one write: enough for one system call, little enough to stay in the cache between sealing and sending.
constexpr std::size_t write_bytes_max = 16 * record_bytes;
constexpr std::size_t read_ahead_bytes = 64 << 10;

void require(bool worked, const char* what) {
  if (!worked) throw Error(std::string("OpenSSL cannot ") + what);
}

const BIO_METHOD* socket_method() {
  static const BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "tutti socket");
    require(made != nullptr && BIO_meth_set_read(made, TlsCallbacks::read) == 1 &&
                BIO_meth_set_write(made, TlsCallbacks::write) == 1 &&
                BIO_meth_set_ctrl(made, TlsCallbacks::control) == 1,
            "describe a socket");
    return made;
  }();
  return method;
}

// What all sessions have in common; it holds no secret. A server has no certificate, and a client accepts none: without the key there
// is nothing by which a side could be known, and the handshake fails.
SSL_CTX* common_settings() {
  static SSL_CTX* const settings = [] {
    SSL_CTX* made = SSL_CTX_new(TLS_method());
    require(made != nullptr && SSL_CTX_set_min_proto_version(made, TLS1_3_VERSION) == 1 &&
                SSL_CTX_set_max_proto_version(made, TLS1_3_VERSION) == 1 &&
                SSL_CTX_set_ciphersuites(made, "TLS_AES_128_GCM_SHA256") == 1 &&
                SSL_CTX_set1_groups_list(made, "X25519") == 1 && SSL_CTX_set_num_tickets(made, 0) == 1,
            "set TLS 1.3 up");
    SSL_CTX_set_session_cache_mode(made, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_options(made, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_psk_use_session_callback(made, TlsCallbacks::client_key);
    SSL_CTX_set_psk_find_session_callback(made, TlsCallbacks::server_key);
    SSL_CTX_set_read_ahead(made, 1);
    SSL_CTX_set_default_read_buffer_len(made, read_ahead_bytes);
    return made;
  }();
  return settings;
}

std::span<const std::byte> bytes_of(const iovec& piece) {
  return {static_cast<const std::byte*>(piece.iov_base), piece.iov_len};
}

}  // namespace

void TlsSession::Free::operator()(ssl_st* ssl) const { SSL_free(ssl); }

TlsSession::TlsSession(int socket, Role role, std::span<const std::byte, tls_key_bytes> key,
                       std::uint64_t records_per_key)
    : socket_(socket), records_per_key_(records_per_key), ssl_(SSL_new(common_settings())) {
  std::ranges::copy(key, key_.begin());
  BIO* const bio = ssl_ ? BIO_new(socket_method()) : nullptr;
  require(bio != nullptr, "make a TLS session");
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_.get(), bio, bio);
  SSL_set_app_data(ssl_.get(), this);
  if (role == Role::server) {
    SSL_set_accept_state(ssl_.get());
  } else {
    SSL_set_verify(ssl_.get(), SSL_VERIFY_PEER, nullptr);  // and trusts no certificate
    SSL_set_connect_state(ssl_.get());
  }
}

TlsSession::~TlsSession() { OPENSSL_cleanse(key_.data(), key_.size()); }

bool TlsSession::holds_input() const { return SSL_has_pending(ssl_.get()) == 1; }

Transfer TlsSession::shake_hands() {
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_.get());
  const Transfer state = settle(result);
  const Transfer sent = send_sealed();
  if (!state.moved() || !sent.moved()) return state.moved() || sent.closed() ? sent : state;
  OPENSSL_cleanse(key_.data(), key_.size());
  // Nothing else could have been agreed on; it costs nothing to look.
  if (SSL_session_reused(ssl_.get()) != 1) ended_ = {.status = Transfer::Status::closed, .tls = "the key was not used"};
  return ended_.value_or(state);
}

// What a call of OpenSSL's that did not succeed means. The alert that it may have written is sent as far as the socket takes it.
Transfer TlsSession::settle(int result) {
  if (result == 1) return {.status = Transfer::Status::moved};
  if (ended_) return *ended_;
  if (SSL_get_error(ssl_.get(), result) == SSL_ERROR_WANT_READ) return {};
  const char* const reason = ERR_reason_error_string(ERR_peek_error());
  ended_ = {.status = Transfer::Status::closed, .tls = reason != nullptr ? reason : "it was ended"};
  send_sealed();
  return *ended_;
}

Transfer TlsSession::read(std::span<const iovec> into) {
  ERR_clear_error();
  std::size_t total = 0;
  for (const iovec& piece : into) {
    for (std::size_t done = 0; done < piece.iov_len;) {
      std::size_t bytes = 0;
      const int result =
          SSL_read_ex(ssl_.get(), static_cast<std::byte*>(piece.iov_base) + done, piece.iov_len - done, &bytes);
      if (result != 1) {
        const Transfer state = settle(result);  // an end shows again in the next read
        return total > 0 ? Transfer{.status = Transfer::Status::moved, .bytes = total} : state;
      }
      done += bytes;
      total += bytes;
    }
  }
  return {.status = Transfer::Status::moved, .bytes = total};
}

Transfer TlsSession::write(std::span<const iovec> from) {
  if (ended_) return *ended_;
  if (const Transfer sent = send_sealed(); !sent.moved()) return sent;
  // Short pieces share a record, long ones are sealed from where they lie.
  std::array<std::byte, record_bytes> gathered;
  std::size_t filled = 0, total = 0;
  for (const iovec& piece : from) {
    for (auto rest = bytes_of(piece); !rest.empty() && total < write_bytes_max;) {
      const std::size_t bytes = std::min(rest.size(), record_bytes - filled);
      if (bytes == record_bytes) {
        seal(rest.data(), bytes);
      } else {
        std::memcpy(gathered.data() + filled, rest.data(), bytes);
        filled += bytes;
      }
      if (filled == record_bytes) seal(gathered.data(), std::exchange(filled, 0));
      rest = rest.subspan(bytes);
      total += bytes;
    }
  }
  if (filled > 0) seal(gathered.data(), filled);
  if (const Transfer sent = send_sealed(); sent.closed()) return sent;
  return {.status = Transfer::Status::moved, .bytes = total};
}

void TlsSession::seal(const std::byte* bytes, std::size_t count) {
  ERR_clear_error();
  if (++records_ % records_per_key_ == 0)
    require(SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED) == 1, "renew a key");
  std::size_t taken = 0;
  require(SSL_write_ex(ssl_.get(), bytes, count, &taken) == 1 && taken == count, "encrypt");
}

Transfer TlsSession::send_sealed() {
  while (has_unsent()) {
    const Transfer moved = write_some(socket_, std::span(sealed_).subspan(sent_));
    if (!moved.moved()) return moved;
    sent_ += moved.bytes;
  }
  sealed_.clear();
  sent_ = 0;
  return {.status = Transfer::Status::moved};
}

}  // namespace tutti::wire
