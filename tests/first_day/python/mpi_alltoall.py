# mpi_alltoall.py: mpi4py, Alltoall
# SPDX-License-Identifier: Apache-2.0
# ranks: 3
import numpy as np

import tutti

comm = tutti.init()
print(comm.rank, comm.all_to_all(np.arange(comm.size) + 10 * comm.rank))

# prints:
#   0 [ 0 10 20]
#   1 [ 1 11 21]
#   2 [ 2 12 22]
