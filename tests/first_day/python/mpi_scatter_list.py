# mpi_scatter_list.py: mpi4py's tutorial, scattering Python objects
# SPDX-License-Identifier: Apache-2.0
# ranks: 3
import tutti

comm = tutti.init()
data = [(i + 1) ** 2 for i in range(comm.size)] if comm.rank == 0 else None
data = comm.scatter_object(data, root=0)
assert data == (comm.rank + 1) ** 2
print(data)

# prints:
#   1
#   4
#   9
