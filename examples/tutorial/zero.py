# zero.py: Adam with its state shared out, by hand and by the library: ZeRO's first two stages.
# SPDX-License-Identifier: Apache-2.0
import numpy as np

import tutti

world = tutti.init()
rank, size = world.rank, world.size
RATE, BETA1, BETA2, TINY = 0.01, 0.9, 0.999, 1e-8


def adam(weights, gradients, m, v, step):
    """One step, in place."""
    m += (1 - BETA1) * (gradients - m)
    v += (1 - BETA2) * (gradients**2 - v)
    weights -= RATE * (m / (1 - BETA1**step)) / (np.sqrt(v / (1 - BETA2**step)) + TINY)


class ZeroAdam:
    """This rank keeps m and v of its part of the weights, and steps that part only."""

    def __init__(self, count):
        self.sizes = [len(part) for part in np.array_split(np.empty(count), size)]
        self.begin = sum(self.sizes[:rank])
        self.m, self.v, self.steps = np.zeros(self.sizes[rank]), np.zeros(self.sizes[rank]), 0

    def step(self, weights, gradients):
        self.steps += 1
        mine = tutti.reduce_scatter(gradients, op="mean", sizes=self.sizes)       # only this rank's part of the mean
        part = weights[self.begin : self.begin + self.sizes[rank]].copy()
        adam(part, mine, self.m, self.v, self.steps)
        weights[:] = tutti.all_gather(part, sizes=self.sizes)                     # everybody gets all parts


count = 1001                                                                      # a number that ranks do not divide
random = np.random.default_rng(rank)                                              # each rank has gradients of its own
weights, plain, library = (np.ones(count) for _ in range(3))
zero, m, v = ZeroAdam(count), np.zeros(count), np.zeros(count)
shared = tutti.zero.AdamW({"w": library}, lr=RATE, weight_decay=0.0, stage=2)     # the library's, for trees of arrays
for step in range(1, 6):
    gradients = random.normal(size=count)
    adam(plain, tutti.all_reduce(gradients, op="mean"), m, v, step)               # what data parallelism does without ZeRO
    zero.step(weights, gradients)
    shared.step({"w": gradients})

assert np.allclose(weights, plain) and np.allclose(library, plain)
if rank == 0:
    print(f"state on rank 0: {zero.m.nbytes + zero.v.nbytes} bytes instead of {m.nbytes + v.nbytes}")
