# init_first.py: Tutti joins the job first, then the program initialises MPI by mpi4py, and uses both.
# SPDX-License-Identifier: Apache-2.0
#
#   mpirun -n 3 python init_first.py BACKEND
import os
import sys

import numpy as np

import tutti

backend = sys.argv[1]
world = tutti.init(backend=backend, timeout=60)
assert world.all_reduce(np.ones(1000))[0] == world.size

from mpi4py import MPI  # noqa: E402  (initialises MPI, unless Tutti has)

everyone = MPI.COMM_WORLD
assert everyone.size == world.size, (everyone.size, world.size)
on_mpi = tutti.Group(range(world.size), backend="mpi")
for step in range(30):
    ours = world.all_reduce(np.full(3000, world.rank + step, np.float64))
    theirs = np.empty(3000)
    everyone.Allreduce(np.full(3000, world.rank + step, np.float64), theirs)
    assert np.array_equal(ours, theirs), step
    work = on_mpi.all_reduce(np.ones(20_000, np.float32), async_op=True)
    assert everyone.allreduce(1) == world.size
    assert work.wait()[0] == world.size
assert on_mpi.backend == "mpi"
os.write(1, f"rank {world.rank}: right\n".encode())
