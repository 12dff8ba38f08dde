# torch_losses.py: the sum of all ranks' losses, and its gradients by finite differences. For tests of gradients.
# SPDX-License-Identifier: Apache-2.0
import torch

import tutti

STEP = 1e-4


def input_of(rank, shape):
    """Different on every rank and element, and nowhere near a tie."""
    count = torch.Size(shape).numel()
    return torch.sin(torch.arange(count, dtype=torch.float64) * 1.7 + rank * 2.3 + 0.4).reshape(shape)


def loss_of(y, rank):
    """A loss of this rank's own, in which every element counts differently."""
    weights = torch.cos(torch.arange(y.numel(), dtype=torch.float64) * 0.9 + rank).reshape(y.shape)
    return (weights * y * y + torch.sin(y)).sum()


def total_of(value):
    """The sum over ranks of a number that each has."""
    return tutti.all_reduce(value.detach().reshape(1)).item()


def numeric_gradient(total, x, rank, size):
    """The derivative of total(x), a number that depends on every rank's x, by this rank's x. Collective."""
    count_max = int(tutti.all_reduce(torch.tensor([x.numel()]), op="max"))
    gradient = torch.zeros_like(x).reshape(-1)
    for mover in range(size):
        for i in range(count_max):
            slope = _slope(total, x, i if mover == rank and i < x.numel() else None)
            if mover == rank and i < x.numel():
                gradient[i] = slope
    return gradient.reshape(x.shape)


def _slope(total, x, i):
    values = []
    for step in (STEP, -STEP):
        moved = x.detach().clone()
        if i is not None:
            moved.view(-1)[i] += step
        values.append(total(moved))
    return (values[0] - values[1]) / (2 * STEP)


def check_gradient(function, x, rank, size):
    """Compares autograd with finite differences of the sum of all ranks' losses, once and, by create_graph, twice."""
    leaf = x.clone().requires_grad_()
    (got,) = torch.autograd.grad(loss_of(function(leaf), rank), leaf)
    expected = numeric_gradient(lambda moved: total_of(loss_of(function(moved), rank)), x, rank, size)
    torch.testing.assert_close(got, expected, rtol=1e-6, atol=1e-7)


def check_second_gradient(function, x, rank, size):
    """The gradient of a loss of gradients."""

    def penalty(start):
        leaf = start if start.requires_grad else start.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(loss_of(function(leaf), rank), leaf, create_graph=True)
        return loss_of(gradient, rank + 5)

    leaf = x.clone().requires_grad_()
    (got,) = torch.autograd.grad(penalty(leaf), leaf)
    expected = numeric_gradient(lambda moved: total_of(penalty(moved)), x, rank, size)
    torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-6)
