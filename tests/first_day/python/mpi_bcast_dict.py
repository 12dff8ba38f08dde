# mpi_bcast_dict.py: mpi4py's tutorial, broadcasting a Python dictionary
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import tutti

comm = tutti.init()
if comm.rank == 0:
    data = {"key1": [7, 2.72, 2 + 3j], "key2": ("abc", "xyz")}
else:
    data = None
data = comm.broadcast_object(data, root=0)
print(comm.rank, data["key1"], data["key2"])

# prints:
#   0 [7, 2.72, (2+3j)] ('abc', 'xyz')
#   1 [7, 2.72, (2+3j)] ('abc', 'xyz')
