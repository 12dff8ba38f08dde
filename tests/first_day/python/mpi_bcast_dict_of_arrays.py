# mpi_bcast_dict_of_arrays.py: comm.bcast of a dict that only the root has
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import numpy as np

import tutti

comm = tutti.init()
comm.broadcast({"w": np.ones(3), "b": np.zeros(1)} if comm.rank == 0 else None)
comm.barrier()

# raises on every rank: tutti.Mismatch: …None stands for one array: for a tree of arrays, pass one like the root's on every rank, or send it as an object…
