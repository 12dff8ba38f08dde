# mpi_waitall.py: mpi4py, Request.waitall over many messages
# SPDX-License-Identifier: Apache-2.0
# ranks: 3
import numpy as np

import tutti

comm = tutti.init()
others = [r for r in range(comm.size) if r != comm.rank]
receives = [comm.irecv(like=np.empty(1, int), src=r) for r in others]
sends = [comm.isend(np.array([comm.rank]), dst=r) for r in others]
received = tutti.wait_all(receives + sends)[: len(others)]
print(comm.rank, [int(x[0]) for x in received])

# prints:
#   0 [1, 2]
#   1 [0, 2]
#   2 [0, 1]
