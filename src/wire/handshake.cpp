// handshake.cpp: the four messages of the handshake.
// SPDX-License-Identifier: Apache-2.0
#include "wire/handshake.hpp"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>

#include <tutti/error.hpp>

#include "base/bytes.hpp"

namespace tutti::wire {

namespace {

// The line ends and the bytes above 127 make sure that no text protocol begins like this, and that nothing on the way
// rewrote the bytes.
constexpr std::string_view magic = "\x93Tutti\r\n";
static_assert(magic.size() + sizeof(std::uint16_t) == Handshake::prefix_bytes);

constexpr std::byte welcome{0x06};

constexpr std::string_view label_of(Handshake::Role role) {
  return role == Handshake::Role::initiator ? "tutti handshake initiator" : "tutti handshake acceptor ";
}

Handshake::Role opposite(Handshake::Role role) {
  return role == Handshake::Role::initiator ? Handshake::Role::acceptor : Handshake::Role::initiator;
}

// Where these are in a hello; the nonce follows.
constexpr std::size_t role_at = Handshake::prefix_bytes, encryption_at = role_at + 1, purpose_bytes_at = role_at + 2;
constexpr std::size_t purpose_at = purpose_bytes_at + 1 + Handshake::nonce_bytes;
static_assert(purpose_at + Handshake::purpose_bytes_max == Handshake::hello_bytes);

}  // namespace

Encryption encryption_from(const Environment& environment) {
  return environment.flag("TUTTI_TLS").value_or(false) ? Encryption::tls : Encryption::none;
}

Handshake::Handshake(const Setup& setup) : role_(setup.role), secret_(setup.secret), version_(setup.version) {
  if (setup.purpose.size() > purpose_bytes_max) {
    throw InvalidArgument(fmt::format("the purpose of a handshake has {} bytes, at most {} fit", setup.purpose.size(),
                                      purpose_bytes_max));
  }
  Nonce nonce;
  if (setup.nonce) {
    nonce = *setup.nonce;
  } else {
    fill_random(nonce);
  }
  ByteWriter hello;
  hello.raw(std::as_bytes(std::span(magic))).u16(version_);
  hello.u8(static_cast<std::uint8_t>(role_)).u8(static_cast<std::uint8_t>(setup.encryption));
  hello.u8(static_cast<std::uint8_t>(setup.purpose.size()));
  hello.raw(nonce).raw(std::as_bytes(std::span(setup.purpose)));
  std::copy(hello.data().begin(), hello.data().end(), mine_.begin());  // the rest of the purpose stays zero
  if (role_ == Role::initiator) send(mine_);
}

std::size_t Handshake::message_end() const {
  switch (expect_) {
    case Expect::prefix: return prefix_bytes;
    case Expect::hello: return hello_bytes;
    case Expect::proof: return hello_bytes + mac_bytes;
    case Expect::welcome: return hello_bytes + mac_bytes + 1;
    case Expect::nothing: break;
  }
  return received_;
}

std::size_t Handshake::wanted() const { return failed_ ? 0 : message_end() - received_; }

std::size_t Handshake::feed(std::span<const std::byte> bytes) {
  std::size_t taken = 0;
  while (wanted() > 0 && taken < bytes.size()) {
    const std::size_t piece = std::min(wanted(), bytes.size() - taken);
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(taken), piece,
                theirs_.begin() + static_cast<std::ptrdiff_t>(received_));
    received_ += piece;
    taken += piece;
    if (received_ < message_end()) break;
    switch (expect_) {
      case Expect::prefix: check_prefix(); break;
      case Expect::hello: check_hello(); break;
      case Expect::proof: check_proof(); break;
      case Expect::welcome: check_welcome(); break;
      case Expect::nothing: break;
    }
  }
  return taken;
}

void Handshake::check_prefix() {
  const auto prefix = std::span(theirs_).first(prefix_bytes);
  if (!std::equal(magic.begin(), magic.end(), prefix.begin(), [](char a, std::byte b) { return std::byte(a) == b; })) {
    return fail("what it sent is not Tutti's protocol: another program talks on that port, or to ours");
  }
  spoke_ = true;
  const std::uint16_t theirs = ByteReader(prefix.subspan(magic.size())).u16();
  if (theirs != version_) {
    // Our version in return, so that the other side can say the same; it has heard it already if it accepted.
    if (role_ == Role::acceptor) send(std::span(mine_).first(prefix_bytes));
    return fail(
        fmt::format("it speaks version {} of the protocol and this side version {}: install the same release of "
                    "Tutti on all hosts",
                    theirs, version_));
  }
  expect_ = Expect::hello;
}

void Handshake::check_hello() {
  const auto hello = std::span(theirs_).first(hello_bytes);
  if (std::to_integer<std::uint8_t>(hello[role_at]) != static_cast<std::uint8_t>(opposite(role_))) {
    return fail("it claims the same side of the connection as we have: something sends our own bytes back");
  }
  if (std::to_integer<std::size_t>(hello[purpose_bytes_at]) > purpose_bytes_max) {
    return fail("its first message is malformed");
  }
  expect_ = Expect::proof;
  if (role_ == Role::initiator) return;
  // With the proof, so that the other side can believe what it reads there about encryption.
  send(mine_);
  send(proof_of(label_of(Role::acceptor)));
  agree_on_encryption();
}

void Handshake::agree_on_encryption() {
  if (theirs_[encryption_at] == mine_[encryption_at]) return;
  const bool encrypts = mine_[encryption_at] != std::byte{0};
  fail(fmt::format(
      "TLS is asked for on {} side only: set TUTTI_TLS=1 for all ranks and for what starts them, or for none",
      encrypts ? "this" : "its"));
}

void Handshake::check_proof() {
  const auto expected = proof_of(label_of(opposite(role_)));
  if (CRYPTO_memcmp(expected.data(), theirs_.data() + hello_bytes, mac_bytes) != 0) {
    return fail(
        "it does not know this job's secret: check that all ranks get the same TUTTI_SECRET or key file, and that "
        "address and port belong to this job");
  }
  if (role_ == Role::initiator) {
    agree_on_encryption();
    if (failed_) return;
    expect_ = Expect::welcome;
    send(proof_of(label_of(Role::initiator)));
  } else {
    expect_ = Expect::nothing;
    send(std::span(&welcome, 1));
  }
}

void Handshake::check_welcome() {
  if (theirs_[hello_bytes + mac_bytes] != welcome) return fail("its last message is malformed");
  expect_ = Expect::nothing;
}

std::array<std::byte, Handshake::mac_bytes> Handshake::proof_of(std::string_view label) const {
  const auto theirs = std::span(theirs_).first(hello_bytes);
  ByteWriter text;
  text.raw(std::as_bytes(std::span(label)));
  if (role_ == Role::initiator) {
    text.raw(mine_).raw(theirs);
  } else {
    text.raw(theirs).raw(mine_);
  }
  std::array<std::byte, mac_bytes> mac;
  unsigned bytes = 0;
  const auto* made = HMAC(EVP_sha256(), secret_.bytes().data(), static_cast<int>(secret_.bytes().size()),
                          reinterpret_cast<const unsigned char*>(text.data().data()), text.size(),
                          reinterpret_cast<unsigned char*>(mac.data()), &bytes);
  if (made == nullptr || bytes != mac_bytes) throw Error("OpenSSL cannot compute HMAC-SHA256");
  return mac;
}

void Handshake::send(std::span<const std::byte> bytes) {
  if (sent_ == queued_) sent_ = queued_ = 0;
  std::copy(bytes.begin(), bytes.end(), output_.begin() + static_cast<std::ptrdiff_t>(queued_));
  queued_ += bytes.size();
}

void Handshake::fail(std::string reason) {
  failed_ = true;
  error_ = std::move(reason);
}

void Handshake::closed(std::string_view how) {
  if (state() != State::running) return;
  if (peer_is_proven()) {
    return fail(
        fmt::format("it {} at the end of the handshake: this side was too late, or its process has ended", how));
  }
  const bool greeted = received_ >= hello_bytes;
  fail(fmt::format("it {} {}: {}", how, greeted ? "in the middle of the handshake" : "before it said anything we know",
                   greeted || role_ == Role::initiator
                       ? "it may have found that our secret is not its own; check that all ranks get the same "
                         "TUTTI_SECRET or key file, and that address and port belong to this job"
                       : "it is a port scan, another program, or a rank that died"));
}

Handshake::State Handshake::state() const {
  if (failed_) return State::failed;
  return expect_ == Expect::nothing && sent_ == queued_ ? State::done : State::running;
}

std::string_view Handshake::peer_purpose() const {
  const auto bytes = std::to_integer<std::size_t>(theirs_[purpose_bytes_at]);
  return {reinterpret_cast<const char*>(theirs_.data()) + purpose_at, bytes};
}

}  // namespace tutti::wire
