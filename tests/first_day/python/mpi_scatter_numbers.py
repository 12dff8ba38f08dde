# mpi_scatter_numbers.py: comm.scatter([1, 4]): one object per rank
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import tutti

comm = tutti.init()
print(tutti.scatter_object([1, 4] if comm.rank == 0 else None))
comm.scatter([1, 4] if comm.rank == 0 else None)

# raises on rank 0: tutti.InvalidArgument: scatter: [0] is a number, which cannot be cut: …numpy.array(values) or, for an object per rank, scatter_object(values)
# raises on rank 1: tutti.Aborted: …scatter: [0] is a number, which cannot be cut…
