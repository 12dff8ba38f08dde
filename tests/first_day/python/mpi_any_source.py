# mpi_any_source.py: mpi4py, receiving from MPI.ANY_SOURCE
# SPDX-License-Identifier: Apache-2.0
# ranks: 4
import numpy as np

import tutti

comm = tutti.init()
if comm.rank == 0:
    found = set()
    for _ in range(comm.size - 1):
        work = comm.irecv(like=np.empty(1, int), src=None)
        assert work.wait()[0] == work.source
        found.add(work.source)
    print(found)
else:
    comm.send(np.array([comm.rank]), dst=0)

# prints:
#   {1, 2, 3}
