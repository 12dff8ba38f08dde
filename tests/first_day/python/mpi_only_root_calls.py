# mpi_only_root_calls.py: a collective inside `if rank == 0`
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import numpy as np

import tutti

comm = tutti.init()
if comm.rank == 0:
    comm.broadcast(np.ones(3))
tutti.finalize()

# raises on some rank: tutti.…: …rank 1 … left the job without taking part in the call broadcast…every rank of a group must make the same calls in the same order…
