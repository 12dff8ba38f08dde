# mpi_waitany.py: mpi4py, Request.waitany: in the order of arrival
# SPDX-License-Identifier: Apache-2.0
# ranks: 4
import numpy as np

import tutti

comm = tutti.init()
if comm.rank == 0:
    works = [comm.irecv(like=np.empty(1, int), src=r) for r in range(1, comm.size)]
    total = 0
    while works:
        index, message = tutti.wait_any(works)
        total += int(message[0])
        del works[index]
    print(total)
else:
    comm.send(np.array([10**comm.rank]), dst=0)

# prints:
#   1110
