# mpi_bcast_name.py: mpi4py's bcast
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import tutti

data = tutti.bcast({"a": 7}, root=0)

# raises on every rank: AttributeError: tutti has no bcast; it is called tutti.broadcast for arrays, tutti.broadcast_object for objects here
