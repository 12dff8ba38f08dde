# mpi_pi.py: mpi4py's tutorial, computing pi by a reduction
# SPDX-License-Identifier: Apache-2.0
# ranks: 4
import math

import tutti

comm = tutti.init()
n = 100
h = 1.0 / n
s = sum(4.0 / (1.0 + (h * (i + 0.5)) ** 2) for i in range(comm.rank, n, comm.size))
pi = comm.reduce(s * h, op="sum", root=0)
if comm.rank == 0:
    print(f"pi is {pi:.6f}, error {abs(pi - math.pi):.1e}")

# prints:
#   pi is 3.141601, error 8.3e-06
