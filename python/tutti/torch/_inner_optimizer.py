# _inner_optimizer.py: which optimisers ZeroOptimizer can share out, and how they are to be given.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import torch

from .._errors import InvalidArgument, Unsupported

# Each element of a parameter is stepped by itself: their runs may be cut anywhere.
ELEMENT_WISE = ("Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD")
REFUSED = {
    "LBFGS": "it looks along all parameters at once",
    "SparseAdam": "it needs sparse gradients",
}


def checked_name(optimizer: Any) -> str:
    """Of the class to share out; what cannot be is refused with what to write instead."""
    if isinstance(optimizer, type):
        name = optimizer.__name__
        if name in REFUSED:
            raise Unsupported(f"ZeroOptimizer: {name} cannot be shared out: {REFUSED[name]}")
        return name
    if isinstance(optimizer, torch.optim.Optimizer):
        kind = type(optimizer).__name__
        options = ", ".join(f"{key}={value!r}" for key, value in optimizer.defaults.items() if key == "lr")
        raise InvalidArgument(
            f"ZeroOptimizer: {kind}(…) is an optimiser already, which has all parameters; pass the class and its options:"
            f" ZeroOptimizer(model.parameters(), torch.optim.{kind}{', ' + options if options else ''})"
        )
    raise InvalidArgument(
        f"ZeroOptimizer: {optimizer!r} is not a class of optimisers; pass one, such as torch.optim.AdamW, and its options"
        " by name"
    )
