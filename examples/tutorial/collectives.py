# collectives.py: every collective once, on small arrays; rank 0 shows what it got.
# SPDX-License-Identifier: Apache-2.0
import numpy as np

import tutti

world = tutti.init()
rank, size = world.rank, world.size
mine = np.array([rank + 1.0, 10 * (rank + 1.0)])                    # rank 0: [1, 10], rank 1: [2, 20]


def show(verb, result):
    if rank == 0:
        print(f"{verb:15}", np.asarray(result).tolist())


show("all_reduce", tutti.all_reduce(mine))                          # the sum, on every rank
show("mean", tutti.all_reduce(mine, op="mean"))
show("max", tutti.all_reduce(mine, op="max"))
show("reduce", tutti.reduce(mine, root=0))                          # the sum, on the root only
show("broadcast", tutti.broadcast(mine if rank == 1 else None, root=1))
show("all_gather", tutti.all_gather(mine, axis=None))               # everybody's array, on every rank
show("gather", tutti.gather(mine, root=0, axis=None))
show("scatter", tutti.scatter(np.arange(size) if rank == 0 else None, root=0))
show("reduce_scatter", tutti.reduce_scatter(np.ones(size)))         # this rank's part of the sum
show("all_to_all", tutti.all_to_all(np.arange(size) + 10 * rank))   # one part for each, one part from each
show("scan", tutti.scan(mine))                                      # of the ranks up to this one
tutti.barrier()                                                     # nobody goes on before all are here

first_two = tutti.Group([0, 1])                                     # a group of some ranks
if rank in (0, 1):
    show("in a group", first_two.all_reduce(mine))
half = world.split(color=rank % 2, key=rank)                        # all ranks, divided by color
show("even ranks", half.all_reduce(mine))
