// ucx_setup.hpp: whether a job's messages go through UCX, on which all ranks agree when they meet.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <tutti/connector.hpp>
#include <tutti/link.hpp>

#include "base/environment.hpp"
#include "base/log.hpp"
#include "link/ucx.hpp"

namespace tutti {

/// One rank's end of UCX, while the ranks meet. TUTTI_LINK=ucx, or the backend "ucx", asks for it; TUTTI_LINK=tcp refuses it. Otherwise it is
/// used between hosts if every rank's UCX has a fabric with remote memory access.
class UcxJoining {
 public:
  /// Opens UCX where it may be used. InvalidArgument if TUTTI_LINK makes no sense.
  UcxJoining(const std::string& backend, const Place& place, const Environment& environment);

  /// What the other ranks have to know: printable but for UCX's address at its end.
  [[nodiscard]] const std::string& record() const { return record_; }

  struct Peers {
    const std::vector<std::string>& records;  // of all ranks
    const std::vector<int>& nodes;
    wire::Secret secret;
    std::uint64_t world = 0;
  };
  /// Null: the messages go another way. Throws the same on all ranks if they ask for different links, or one of them cannot use UCX.
  std::unique_ptr<Link> make_link(const Peers& peers, const Log& log);

 private:
  int rank_;
  bool encrypts_;
  std::string record_;
  std::unique_ptr<link::UcxWorker> worker_;
};

}  // namespace tutti
