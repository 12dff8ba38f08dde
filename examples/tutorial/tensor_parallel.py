# tensor_parallel.py: two linear layers, split over the ranks: the first by columns, the second by rows, one sum for both.
# SPDX-License-Identifier: Apache-2.0
import numpy as np

import tutti

world = tutti.init()
rank, size = world.rank, world.size
mp = tutti.model_parallel
mp.init()                                                       # all ranks hold one model together

random = np.random.default_rng(0)                               # the same numbers on every rank
x = random.normal(size=(5, 6))
up, down = random.normal(size=(6, 8)), random.normal(size=(8, 6))
whole = np.maximum(x @ up, 0) @ down                            # what one process computes

my_up = np.array_split(up, size, axis=1)[rank]                  # some of the columns: some of the hidden units
my_down = np.array_split(down, size, axis=0)[rank]              # the rows that belong to them
hidden = np.maximum(mp.copy(x) @ my_up, 0)                      # no communication: each rank has its own hidden units
y = mp.reduce(hidden @ my_down)                                 # one all-reduce
assert np.allclose(y, whole)

dy = np.ones_like(y)                                            # backward: the gradient of y is the same on every rank
d_hidden = (mp.reduce.backward(dy) @ my_down.T) * (hidden > 0)  # nothing to do for reduce …
dx = mp.copy.backward(d_hidden @ my_up.T)                       # … and one all-reduce for copy
assert np.allclose(dx, ((dy @ down.T) * (x @ up > 0)) @ up.T)
if rank == 0:
    print("each rank holds", my_up.size + my_down.size, "of", up.size + down.size, "weights")
mp.destroy()
