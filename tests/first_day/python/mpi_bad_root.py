# mpi_bad_root.py: a root that does not exist
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import numpy as np

import tutti

comm = tutti.init()
comm.broadcast(np.ones(3), root=comm.size)

# raises on every rank: tutti.InvalidArgument: …root…
