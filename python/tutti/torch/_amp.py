# _amp.py: torch's GradScaler with optimisers whose gradients are shared out: all ranks see an infinity, or none.
# SPDX-License-Identifier: Apache-2.0
"""GradScaler divides gradients by its scale, looks for infinities and skips the step where it found one. It looks at
`p.grad` of this rank only. With ZeroOptimizer that is wrong twice: in stage 1 a rank that skips leaves the others waiting
in their step, and from stage 2 on there is nothing in `p.grad`. GradScaler has one method for this work, which
subclasses (such as FSDP's) override; for a ZeroOptimizer the work is done here instead, and its finding is agreed on."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from .. import _native

_CPU = torch.device("cpu")
_ANY = _native.Call("all_reduce", op="max")
Found = dict[torch.device, torch.Tensor]  # as GradScaler keeps it: 1 where there was an infinity or NaN


def agree(found: Found, group: Any) -> Found:
    """What any rank found. Collective."""
    flag = np.array([any(float(value) for value in found.values())], np.uint8)
    group.run(_ANY, flag, flag)
    return {_CPU: torch.full((), float(flag[0]), dtype=torch.float32)}


def unscale_runs(runs: list[torch.Tensor], inverse_scale: torch.Tensor, allow_fp16: bool) -> Found:
    """Divides averaged gradients by the scale, in place; tells whether all are finite."""
    found = torch.zeros((), dtype=torch.float32, device=inverse_scale.device)
    for run in runs:
        if run.dtype is torch.float16 and not allow_fp16:
            raise ValueError("Attempting to unscale FP16 gradients.")  # torch's own words
        torch._amp_foreach_non_finite_check_and_unscale_([run], found, inverse_scale)
    return {found.device: found}


def install() -> None:
    """Has GradScaler ask an optimiser that knows better; once."""
    scaler = torch.amp.GradScaler
    original: Callable = scaler._unscale_grads_
    if hasattr(original, "asks_tutti"):
        return

    @functools.wraps(original)
    def unscale(
        self: Any, optimizer: Any, inv_scale: torch.Tensor, found_inf: torch.Tensor, allow_fp16: bool
    ) -> Found:
        plain = functools.partial(original, self, optimizer, inv_scale, found_inf, allow_fp16)
        if not hasattr(optimizer, "unscale_gradients"):
            return plain()
        return optimizer.unscale_gradients(plain, inv_scale, allow_fp16)

    unscale.asks_tutti = True
    scaler._unscale_grads_ = unscale
