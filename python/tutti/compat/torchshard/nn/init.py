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
    """Fills a split parameter with this rank's part of what `init_method` makes of the whole one."""
    axis = split_axis(tensor)
    if axis is None:
        init_method(tensor, **kwargs)
        return
    shape = list(tensor.shape)
    shape[axis] *= distributed.get_group_size()
    with torch.no_grad():
        whole = torch.empty(shape, dtype=tensor.dtype)
        init_method(whole, **kwargs)
        whole = verbs.broadcast(whole, root=0, group=distributed.get_group())
        tensor.copy_(distributed.scatter(whole, axis))
