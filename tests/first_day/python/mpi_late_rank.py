# mpi_late_rank.py: a barrier that one rank does not come to: the deadline names it
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import tutti

comm = tutti.init()
if comm.rank == 0:
    comm.barrier(timeout=0.3)
else:
    comm.recv(out=bytearray(1), src=0, timeout=20)

# raises on rank 0: tutti.Timeout: rank 0 of 2: barrier #…rank 1…
