// no_pmix_board.cpp: stands in for pmix_board.cpp in a build without PMIx headers.
// SPDX-License-Identifier: Apache-2.0
#include <tutti/error.hpp>

#include "rendezvous/boards.hpp"

namespace tutti::rendezvous {

std::unique_ptr<Board> make_pmix_board(BoardKey) {
  throw Unsupported(
      "this build of Tutti does not know PMIx: pmix.h was not found when it was configured (libpmix-dev)");
}

}  // namespace tutti::rendezvous
