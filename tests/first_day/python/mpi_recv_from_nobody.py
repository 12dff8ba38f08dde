# mpi_recv_from_nobody.py: a receive from a rank that has ended
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import tutti

comm = tutti.init()
if comm.rank == 1:
    comm.recv(0)

# raises on rank 1: tutti.PeerLost: rank 1 of 2: recv (any array, tag 0) from rank 0 in the world: rank 0 … left the job without sending it…
