# mpi_rank_before_init.py: asking for the rank before joining, as MPI lets one do
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import tutti

print(tutti.rank())

# raises on every rank: tutti.InvalidArgument: this process has not joined a job: call tutti.init() first…
