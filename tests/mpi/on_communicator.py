# on_communicator.py: Tutti and mpi4py in one process: a job on mpi4py's communicators, calls interleaved.
# SPDX-License-Identifier: Apache-2.0
#
#   mpirun -n 4 python on_communicator.py BACKEND
import os
import sys

import numpy as np
from mpi4py import MPI

import tutti

backend = sys.argv[1]
everyone = MPI.COMM_WORLD

for wrong, words in ((MPI.COMM_NULL, "COMM_NULL"), ("world", "not a communicator of mpi4py")):
    try:
        tutti.init(comm=wrong)
    except tutti.InvalidArgument as error:
        assert words in str(error), error
    else:
        raise AssertionError("a wrong communicator was taken")
try:
    tutti.init(comm=everyone, rank=0)
except tutti.InvalidArgument as error:
    assert "leave init_method, rank and size out" in str(error), error
else:
    raise AssertionError("a rank beside a communicator was taken")

# Two jobs of two ranks each, in the opposite order of MPI's ranks.
comm = everyone.Split(everyone.rank % 2, -everyone.rank)
world = tutti.init(comm=comm, backend=backend, timeout=60)
assert (world.rank, world.size) == (comm.rank, comm.size) and world.size == 2, (world.rank, world.size)
assert backend == "auto" or world.backend == backend, world.backend

for step in range(50):
    ours = world.all_reduce(np.full(3000, everyone.rank + step, np.float64))
    theirs = np.empty(3000)
    comm.Allreduce(np.full(3000, everyone.rank + step, np.float64), theirs)
    assert np.array_equal(ours, theirs), step
    work = world.all_reduce(np.ones(20_000, np.float32), async_op=True)
    assert everyone.allreduce(1) == everyone.size
    assert work.wait()[0] == world.size

group = tutti.Group([1, 0])
assert group.all_reduce(np.ones(1))[0] == 2
tutti.finalize()
assert everyone.allreduce(1) == everyone.size  # MPI is the program's: it lives on
os.write(1, f"rank {everyone.rank}: right\n".encode())  # in one piece, beside what other ranks print
