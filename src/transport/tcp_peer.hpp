// tcp_peer.hpp: what a rank knows of another one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "transport/stage.hpp"
#include "transport/tcp_connection_manager.hpp"
#include "transport/tcp_link.hpp"
#include "wire/address.hpp"

namespace tutti::transport {

struct Peer {
  enum class Standing : std::uint8_t { present, parted, lost };

  int rank = -1;
  wire::Address address;
  Standing standing = Standing::present;
  std::string reason;              // why it is gone, as an error of a transfer says it
  std::uint64_t links_to_end = 0;  // that it opened, as its goodbye says
  bool saying_goodbye = false;     // on one link at least; what the other links hold is still read
  // It was shown to be there: it connected to this rank, or sent something. That a connection to it seems to be open is not
  // enough: the other end may have closed before it knew.
  bool was_reached = false;
  std::uint64_t frames_seen = 0, frames_told = 0;  // frames that came from it; as many as heard_from() knew of

  Link* control = nullptr;      // the one that post() writes to, whoever opened it
  std::vector<Link*> streams;   // opened by this rank: [0] heads and small messages, [1…k] bulk
  std::vector<Link*> incoming;  // opened by the peer

  std::int64_t credit_bytes = 0;      // what may still be sent to it eagerly
  std::int64_t unreturned_bytes = 0;  // credit that the peer has spent here
  std::int64_t used_up_bytes = 0;     // … of which this much can be given back

  std::vector<std::uint64_t>
      cts_received;  // announced messages whose bytes go out, oldest first; few, and it keeps its memory

  [[nodiscard]] bool is_gone() const { return standing != Standing::present; }
  // Calls visit(link) for every link from and to the peer.
  template <class Visit>
  void for_each_link(Visit visit) {
    if (control != nullptr && control->mine) visit(*control);
    for (Link* link : streams) visit(*link);
    for (Link* link : incoming) visit(*link);
  }
};

}  // namespace tutti::transport
