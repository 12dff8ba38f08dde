# mpi_scatterv.py: mpi4py, Scatterv: sizes that differ
# SPDX-License-Identifier: Apache-2.0
# ranks: 3
import numpy as np

import tutti

comm = tutti.init()
part = comm.scatter(np.arange(6) if comm.rank == 0 else None, sizes=[1, 2, 3])
print(comm.rank, part)

# prints:
#   0 [0]
#   1 [1 2]
#   2 [3 4 5]
