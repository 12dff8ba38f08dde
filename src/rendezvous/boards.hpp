// boards.hpp: the launchers' own places for a record. Each throws RendezvousError where its launcher does not answer.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "rendezvous/record.hpp"
#include "wire/address.hpp"

namespace tutti::rendezvous {

// A key-value space that belongs to one job. `key` tells one record from the next, the same on every rank.
struct BoardKey {
  int rank = 0;
  int size = 1;
  std::string key;
};

// PMI-1 over an inherited descriptor: MPICH's hydra, Intel MPI, srun --mpi=pmi2.
std::unique_ptr<Board> make_pmi_board(int fd, BoardKey key);

// PMIx from the library that the launcher brings: Open MPI, srun --mpi=pmix. Unsupported, with the reason, in a build
// without PMIx headers or where there is no library.
std::unique_ptr<Board> make_pmix_board(BoardKey key);

// The store of torchrun's agent, in the simple part of its protocol.
std::unique_ptr<Board> make_agent_board(wire::HostPort where, BoardKey key);

}  // namespace tutti::rendezvous
