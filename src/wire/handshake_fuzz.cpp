// handshake_fuzz.cpp: no input without the secret passes the handshake, and nothing is read beyond it.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>

#include "wire/handshake.hpp"

namespace {

using tutti::wire::Handshake;

void require(bool holds) {
  if (!holds) std::abort();
}

// The first byte chooses the role and how the rest is cut.
void drive(std::span<const std::byte> input, const tutti::wire::Secret& secret) {
  const auto choice = std::to_integer<unsigned>(input[0]);
  const auto role = (choice & 1) != 0 ? Handshake::Role::initiator : Handshake::Role::acceptor;
  const std::size_t piece = choice / 2 + 1;
  Handshake handshake({.role = role, .secret = secret, .purpose = "fuzz", .nonce = Handshake::Nonce{}});
  std::size_t taken = 0;
  for (auto rest = input.subspan(1); !rest.empty() && handshake.wanted() > 0;) {
    handshake.sent(handshake.output().size());
    const std::size_t wanted = handshake.wanted();
    const std::size_t fed = handshake.feed(rest.first(std::min(piece, rest.size())));
    require(fed > 0 || wanted == 0);
    rest = rest.subspan(fed);
    taken += fed;
  }
  require(taken <= Handshake::hello_bytes + Handshake::mac_bytes);
  handshake.closed("closed the connection");
  require(handshake.state() == Handshake::State::failed && !handshake.error().empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const tutti::wire::Secret secret = tutti::wire::make_secret();
  if (size > 0) drive(std::as_bytes(std::span(data, size)), secret);
  return 0;
}
