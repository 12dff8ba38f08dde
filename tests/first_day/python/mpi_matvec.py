# mpi_matvec.py: mpi4py's tutorial, a parallel product of matrix and vector
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import numpy as np

import tutti

comm = tutti.init()
m = 2
A = np.arange(m * m * comm.size, dtype=float).reshape(m, m * comm.size) + comm.rank
x = np.arange(m, dtype=float) + m * comm.rank


def matvec(comm, A, x):
    return A @ comm.all_gather(x)


print(comm.rank, matvec(comm, A, x))

# prints:
#   0 [14. 38.]
#   1 [20. 44.]
