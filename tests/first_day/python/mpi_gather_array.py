# mpi_gather_array.py: mpi4py's tutorial, gathering NumPy arrays
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import numpy as np

import tutti

comm = tutti.init()
sendbuf = np.zeros(3, dtype="i") + comm.rank
recvbuf = comm.gather(sendbuf, root=0, axis=None)
if comm.rank == 0:
    print(recvbuf.tolist())

# prints:
#   [[0, 0, 0], [1, 1, 1]]
