# train_numpy.py: data-parallel training with NumPy: tuttirun -n 2 train_numpy.py
# SPDX-License-Identifier: Apache-2.0
import numpy as np

import problem
import tutti

world = tutti.init()
x, y = problem.samples(world.rank, world.size)
first, second = problem.weights()

for step in range(problem.STEPS):
    hidden = np.tanh(x @ first)
    error = hidden @ second - y
    loss = np.mean(error**2)
    slope = 2 * error / len(y)
    gradients = [x.T @ (np.outer(slope, second) * (1 - hidden**2)), hidden.T @ slope]

    loss, gradients = tutti.average((loss, gradients), weight=len(y))  # of all samples of all ranks
    first -= problem.RATE * gradients[0]
    second -= problem.RATE * gradients[1]
    if world.rank == 0:
        print(f"step {step:2} loss {loss:.6f}")

tutti.finalize()
