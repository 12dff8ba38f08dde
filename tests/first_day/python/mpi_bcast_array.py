# mpi_bcast_array.py: mpi4py's tutorial, broadcasting a NumPy array into memory that is there
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import numpy as np

import tutti

comm = tutti.init()
data = np.arange(100, dtype="i") if comm.rank == 0 else np.empty(100, dtype="i")
comm.broadcast(data, root=0, out=data)
print(comm.rank, all(data[i] == i for i in range(100)))

# prints:
#   0 True
#   1 True
