# clipping.py: the norm of all gradients together, also where parameters are split over ranks.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

from .. import _native
from .. import model_parallel as mp
from .gpu import is_on_gpu


def squares_of(gradients: list[torch.Tensor]) -> float:
    """Σ g² in float64; the same bits on every rank that has the same gradients."""
    total = 0.0
    for gradient in gradients:
        if gradient.dtype in (torch.float32, torch.float64) and gradient.is_contiguous() and not is_on_gpu(gradient):
            total += _native.sum_of_squares(gradient.detach())
        else:
            total += float(gradient.detach().double().abs().square().sum())
    return total


@torch.no_grad()
def clip_grad_norm_(parameters: Iterable[torch.Tensor], max_norm: float, *, group: Any = None) -> torch.Tensor:
    """Scales gradients in place so that their 2-norm together is at most `max_norm`; gives the norm before.

    Of parameters that ParallelLinear and its like have split, all ranks' parts count; of the others, which are the same
    on every rank, this rank's. group: the ranks they are split over; model_parallel's unless given. Collective if any
    is split."""
    with_gradient = [p for p in parameters if p.grad is not None]
    split = [p.grad for p in with_gradient if getattr(p, "tutti_split", None) is not None]
    whole = [p.grad for p in with_gradient if getattr(p, "tutti_split", None) is None]
    square = squares_of(whole)
    if split:
        parts = np.array([squares_of(split)])
        (group or mp.group()).run(_native.Call("all_reduce"), parts, parts)
        square += float(parts[0])
    return scale_to(split + whole, square**0.5, max_norm)


def scale_to(gradients: list[torch.Tensor], norm: float, max_norm: float) -> torch.Tensor:
    """Scales gradients of this norm, in place, to at most `max_norm`; gives the norm before."""
    if norm > max_norm:
        for gradient in gradients:
            gradient.mul_(max_norm / (norm + 1e-6))
    return torch.tensor(norm)
