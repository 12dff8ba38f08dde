# mpi_in_place_name.py: comm.Allreduce(MPI.IN_PLACE, x)
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import numpy as np

import tutti

comm = tutti.init()
x = np.ones(3)
comm.all_reduce(tutti.IN_PLACE, x)

# raises on every rank: AttributeError: tutti has no IN_PLACE; it is called out=x, with the same x here
