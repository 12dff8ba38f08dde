# mpi_truncation.py: arrays of different length in one reduction, which MPI leaves undefined
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import numpy as np

import tutti

comm = tutti.init()
comm.all_reduce(np.ones(3 + comm.rank))
comm.barrier()

# raises on every rank: tutti.Mismatch: …all_reduce…
