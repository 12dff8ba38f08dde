# mpi_sum.py: mpi4py's MPI.SUM
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import tutti

tutti.init()
tutti.all_reduce(1.0, op=tutti.SUM)

# raises on every rank: AttributeError: tutti has no SUM; it is called op="sum" here
