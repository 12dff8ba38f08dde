# mpi_scan.py: mpi4py, Scan and Exscan
# SPDX-License-Identifier: Apache-2.0
# ranks: 4
import tutti

comm = tutti.init()
print(comm.rank, comm.scan(comm.rank + 1), comm.exscan(comm.rank + 1))

# prints:
#   0 1 0
#   1 3 1
#   2 6 3
#   3 10 6
