# mpi_scatter_array.py: mpi4py's tutorial, scattering NumPy arrays
# SPDX-License-Identifier: Apache-2.0
# ranks: 3
import numpy as np

import tutti

comm = tutti.init()
sendbuf = None
if comm.rank == 0:
    sendbuf = np.empty([comm.size, 100], dtype="i")
    sendbuf.T[:, :] = range(comm.size)
recvbuf = comm.scatter(sendbuf, root=0, axis=None)
print(comm.rank, recvbuf.shape, np.allclose(recvbuf, comm.rank))

# prints:
#   0 (100,) True
#   1 (100,) True
#   2 (100,) True
