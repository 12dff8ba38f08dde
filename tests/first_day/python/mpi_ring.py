# mpi_ring.py: mpi4py, Sendrecv around a ring
# SPDX-License-Identifier: Apache-2.0
# ranks: 3
import numpy as np

import tutti

comm = tutti.init()
right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
print(comm.rank, comm.sendrecv(np.array([comm.rank]), dst=right, src=left))

# prints:
#   0 [2]
#   1 [0]
#   2 [1]
