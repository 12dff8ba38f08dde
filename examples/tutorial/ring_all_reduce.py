# ring_all_reduce.py: an all-reduce of one's own, out of messages, and how close it comes to the library's.
# SPDX-License-Identifier: Apache-2.0
import numpy as np

import tutti

world = tutti.init()
rank, size = world.rank, world.size
left, right = (rank - 1) % size, (rank + 1) % size


def ring_all_reduce(x):
    """The sum over all ranks: 2 (size - 1) steps, in each of which a rank sends one block to the right and gets one from the left."""
    x = x.copy()
    blocks = np.array_split(x, size)                                # views of x: block i is summed up at rank i - 1
    for step in range(size - 1):                                    # reduce-scatter: sums grow as they go around
        give, take = (rank - step) % size, (rank - step - 1) % size
        blocks[take] += tutti.sendrecv(blocks[give], dst=right, src=left, out=np.empty_like(blocks[take]))
    for step in range(size - 1):                                    # all-gather: sums go around once more
        give, take = (rank - step + 1) % size, (rank - step) % size
        tutti.sendrecv(blocks[give], dst=right, src=left, out=blocks[take])
    return x


x = np.arange(10.0) + rank                                          # 10 elements: blocks may differ in length
assert np.allclose(ring_all_reduce(x), tutti.all_reduce(x))
if rank == 0:
    print("sum:", ring_all_reduce(x).tolist())
else:
    ring_all_reduce(x)
