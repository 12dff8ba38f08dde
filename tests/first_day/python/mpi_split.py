# mpi_split.py: mpi4py, Split into rows
# SPDX-License-Identifier: Apache-2.0
# ranks: 4
import tutti

comm = tutti.init()
row = comm.split(color=comm.rank // 2, key=-comm.rank)
print(comm.rank, row.rank, row.size, row.members)

# prints:
#   0 1 2 [1, 0]
#   1 0 2 [1, 0]
#   2 1 2 [3, 2]
#   3 0 2 [3, 2]
