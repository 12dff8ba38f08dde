// tcp_peer.hpp: what the tcp link knows of another rank.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "link/tcp_connection.hpp"
#include "link/tcp_connection_manager.hpp"
#include "wire/address.hpp"

namespace tutti::link {

struct TcpPeer {
  enum class Standing : std::uint8_t { present, parted, lost };

  int rank = -1;
  wire::Address address;
  Standing standing = Standing::present;
  std::uint64_t connections_to_end = 0;  // that it opened, as its goodbye says
  bool saying_goodbye = false;           // on one connection at least; what the other connections hold is still read
  // It was shown to be there: it connected to this rank, or sent something. That a connection to it seems to be open is not
  // enough: the other end may have closed before it knew.
  bool was_reached = false;
  bool is_given_up = false;  // lost, as the control network has found: nothing waits until it takes what was sent
  std::uint64_t frames_seen = 0, frames_told = 0;  // frames that came from it; as many as heard_from() knew of

  Connection* control = nullptr;      // the one that post() writes to, opened by either side
  std::vector<Connection*> streams;   // opened by this rank: [0] heads and small messages, [1…k] bulk
  std::vector<Connection*> incoming;  // opened by the peer

  [[nodiscard]] bool is_gone() const { return standing != Standing::present; }
  // Calls visit(connection) for every connection from and to the peer.
  template <class Visit>
  void for_each_connection(Visit visit) {
    if (control != nullptr && control->mine) visit(*control);
    for (Connection* connection : streams) visit(*connection);
    for (Connection* connection : incoming) visit(*connection);
  }
};

}  // namespace tutti::link
