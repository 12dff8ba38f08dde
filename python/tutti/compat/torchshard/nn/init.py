# init.py: torchshard.nn.init.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ...._calls import verbs
from .. import distributed
from .._marks import split_axis


def shard_init_helper_(init_method: Callable[..., Any], tensor: torch.Tensor, **kwargs: Any) -> None:
    """Fills a parameter of a parallel layer with what `init_method` makes on rank 0: with this rank's part, if it is split. Other
    tensors are filled by each rank for itself."""
    if not hasattr(tensor, "parallel_dim"):
        init_method(tensor, **kwargs)
        return
    axis = split_axis(tensor)
    shape = list(tensor.shape)
    if axis is not None:
        shape[axis] *= distributed.get_group_size()
    with torch.no_grad():
        whole = torch.empty(shape, dtype=tensor.dtype)
        init_method(whole, **kwargs)
        whole = verbs.broadcast(whole, root=0)
        tensor.copy_(whole if axis is None else distributed.scatter(whole, axis))
