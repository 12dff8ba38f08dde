# mpi_send_recv_array.py: mpi4py's tutorial, point to point with NumPy arrays
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import numpy as np

import tutti

comm = tutti.init()
if comm.rank == 0:
    comm.send(np.arange(1000, dtype="i"), dst=1, tag=77)
elif comm.rank == 1:
    data = np.empty(1000, dtype="i")
    comm.recv(out=data, src=0, tag=77)
    print(data[-1])

# prints:
#   999
