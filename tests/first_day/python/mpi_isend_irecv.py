# mpi_isend_irecv.py: mpi4py's tutorial, non-blocking point to point
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import numpy as np

import tutti

comm = tutti.init()
if comm.rank == 0:
    req = comm.isend(np.array([7.0, 3.14]), dst=1, tag=11)
    req.wait()
elif comm.rank == 1:
    req = comm.irecv(like=np.empty(2), src=0, tag=11)
    print(req.wait(), "from", req.source)

# prints:
#   [7.   3.14] from 0
