# train_torch.py: data-parallel training with PyTorch: tuttirun -n 2 train_torch.py
# SPDX-License-Identifier: Apache-2.0
import torch

import problem
import tutti

world = tutti.init()
x, y = map(torch.from_numpy, problem.samples(world.rank, world.size))
parameters = [torch.from_numpy(array).requires_grad_() for array in problem.weights()]
optimizer = torch.optim.SGD(parameters, lr=problem.RATE)

for step in range(problem.STEPS):
    first, second = parameters
    loss = torch.mean((torch.tanh(x @ first) @ second - y) ** 2)
    optimizer.zero_grad()
    loss.backward()

    gradients = [parameter.grad for parameter in parameters]
    loss, gradients = tutti.average((loss.detach(), gradients), weight=len(y))  # of all samples of all ranks
    for parameter, gradient in zip(parameters, gradients):
        parameter.grad = gradient
    optimizer.step()
    if world.rank == 0:
        print(f"step {step:2} loss {loss:.6f}")

tutti.finalize()
