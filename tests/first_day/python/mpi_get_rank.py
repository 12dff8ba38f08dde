# mpi_get_rank.py: mpi4py's Get_rank() on a communicator
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import tutti

comm = tutti.init()
print(comm.Get_rank())

# raises on every rank: AttributeError: a tutti.Group has no Get_rank; it is called group.rank here
