// ucx.hpp: a link over UCX, which knows InfiniBand, RoCE, shared memory, TCP and more. UCX is opened at run time.
// SPDX-License-Identifier: Apache-2.0
//
// Nothing here names UCX's own headers: a build without them has the same functions, which say what is missing (no_ucx.cpp).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tutti/link.hpp>

#include "wire/secret.hpp"

namespace tutti::link {

// The same on all ranks of a world, but for the transports and devices.
struct UcxOptions {
  std::string transports{};  // as UCX_TLS; empty: what UCX_TLS says, or all
  std::string devices{};     // as UCX_NET_DEVICES; likewise
  // Larger messages wait until the receiver has room. With its head this fits one segment of UCX's TCP (64 KiB): UCX puts larger frames
  // together in another copy.
  std::int64_t eager_bytes_max = 60 << 10;
  std::int64_t credit_bytes = 2 << 20;  // what one peer may pile up at another before it is received
  std::int64_t fragment_bytes_max = 60 << 10;
  std::int64_t in_flight_bytes_max = 4 << 20;  // what UCX may hold of frames to one peer
};

// What UCX offers here.
struct UcxFindings {
  std::string version{};                  // "1.13.1"; empty: it cannot be used
  std::string file{};                     // "libucp.so.0"
  std::vector<std::string> transports{};  // "tcp/eth0", "rc_mlx5/mlx5_0:1", in UCX's order
  std::vector<std::string> fabrics{};     // those of them that are networks with remote direct memory access
  std::string problem{};                  // why it cannot be used, and what to do about it
};
UcxFindings find_ucx(const UcxOptions& options = {});

// This rank's end of UCX, before the ranks know each other.
class UcxWorker {
 public:
  virtual ~UcxWorker() = default;
  // By which the other ranks reach it.
  [[nodiscard]] virtual std::string address() const = 0;
};
// Error that says why UCX cannot be used here, and what to do about it.
std::unique_ptr<UcxWorker> open_ucx(const UcxOptions& options);

struct UcxSetup {
  std::unique_ptr<UcxWorker> worker{};
  int rank = 0;
  std::vector<std::string> addresses{};  // by rank
  std::vector<bool> on_this_host{};      // by rank: the network notices their ends at once
  wire::Secret secret;
  std::uint64_t world = 0;
  UcxOptions options{};
};
std::unique_ptr<Link> make_ucx_link(UcxSetup setup);

}  // namespace tutti::link
