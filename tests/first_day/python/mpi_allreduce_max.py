# mpi_allreduce_max.py: mpi4py, Allreduce with MPI.MAX
# SPDX-License-Identifier: Apache-2.0
# ranks: 3
import numpy as np

import tutti

comm = tutti.init()
print(comm.all_reduce(np.array([comm.rank, -comm.rank]), op="max"))

# prints:
#   [2 0]
#   [2 0]
#   [2 0]
