# mpi_halo.py: a halo exchange by hand, with MPI.PROC_NULL at the ends
# SPDX-License-Identifier: Apache-2.0
# ranks: 3
import numpy as np

import tutti

comm = tutti.init()
u = np.full(4, comm.rank + 1.0)
left = comm.rank - 1 if comm.rank > 0 else tutti.nobody
right = comm.rank + 1 if comm.rank < comm.size - 1 else tutti.nobody
u[:1] = comm.sendrecv(u[-2:-1].copy(), dst=right, src=left)
u[-1:] = comm.sendrecv(u[1:2].copy(), dst=left, src=right, tag=1)
print(comm.rank, u)

# prints:
#   0 [0. 1. 1. 2.]
#   1 [1. 2. 2. 3.]
#   2 [2. 3. 3. 0.]
