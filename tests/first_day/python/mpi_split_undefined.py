# mpi_split_undefined.py: mpi4py, Split with MPI.UNDEFINED on some ranks
# SPDX-License-Identifier: Apache-2.0
# ranks: 3
import tutti

comm = tutti.init()
even = comm.split(color=0 if comm.rank % 2 == 0 else None)
print(comm.rank, even.rank, even.size)
if even.rank >= 0:
    even.barrier()

# prints:
#   0 0 2
#   1 -1 0
#   2 1 2
