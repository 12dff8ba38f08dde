# mpi_gatherv.py: mpi4py, Gatherv: sizes that differ
# SPDX-License-Identifier: Apache-2.0
# ranks: 3
import numpy as np

import tutti

comm = tutti.init()
local = np.full(comm.rank + 1, comm.rank)
whole = comm.gather(local, root=0, uneven=True)
if comm.rank == 0:
    print(whole)

# prints:
#   [0 1 1 2 2 2]
