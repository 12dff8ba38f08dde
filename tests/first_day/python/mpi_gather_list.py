# mpi_gather_list.py: mpi4py's tutorial, gathering Python objects
# SPDX-License-Identifier: Apache-2.0
# ranks: 3
import tutti

comm = tutti.init()
data = comm.gather_object((comm.rank + 1) ** 2, root=0)
print(comm.rank, data)

# prints:
#   0 [1, 4, 9]
#   1 None
#   2 None
