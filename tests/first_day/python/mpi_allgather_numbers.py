# mpi_allgather_numbers.py: comm.allgather(rank), comm.gather(rank) and a dict of numbers
# SPDX-License-Identifier: Apache-2.0
# ranks: 3
import tutti

comm = tutti.init()
print(comm.all_gather(comm.rank).tolist(), comm.gather(0.5 * comm.rank, root=1), comm.all_gather({"n": comm.rank})["n"])

# prints:
#   [0, 1, 2] 0.0 [0 1 2]
#   [0, 1, 2] [0.  0.5 1. ] [0 1 2]
#   [0, 1, 2] 1.0 [0 1 2]
