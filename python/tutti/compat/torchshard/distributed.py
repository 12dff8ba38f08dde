# distributed.py: torchshard.distributed: the model parallel group, and four functions with gradients.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import torch

from ... import model_parallel
from ..._errors import InvalidArgument
from ..._process import lifecycle
from ._marks import mark


def divide(length: int, parts: int) -> int:
    """TorchShard splits evenly or not at all."""
    if length % parts:
        raise InvalidArgument(f"torchshard: {length} cannot be split into {parts} equal parts")
    return length // parts


def is_initialized() -> bool:
    """Whether init_process_group() has been called."""
    return model_parallel.is_initialized()


def init_process_group(group_size: int = -1) -> None:
    """Cuts the ranks of torch.distributed into groups of `group_size` (−1: one of all). Collective."""
    if not torch.distributed.is_initialized():
        raise InvalidArgument("torchshard: call torch.distributed.init_process_group() first")
    lifecycle.init()
    size = lifecycle.size()
    if size != torch.distributed.get_world_size():
        raise InvalidArgument(
            f"torchshard: torch.distributed has {torch.distributed.get_world_size()} ranks, and Tutti {size}; let one launcher start both"
        )
    model_parallel.init(min(group_size, size))


def destroy_process_group() -> None:
    """Forgets the groups."""
    model_parallel.destroy()


def get_group() -> Any:
    """The group of this rank, for Tutti's verbs."""
    return model_parallel.group()


def get_rank() -> int:
    """This rank's number in its model parallel group."""
    return model_parallel.group().rank


def get_world_size() -> int:
    """The number of ranks of torch.distributed."""
    return model_parallel.world_size()


def get_group_size() -> int:
    """The number of ranks in a model parallel group."""
    return model_parallel.group_size()


def scatter(tensor: torch.Tensor, dim: int = -1) -> torch.Tensor:
    """This rank's part along `dim`; the gradient is the parts' joined."""
    divide(tensor.shape[dim], get_group_size())
    return mark(model_parallel.scatter(tensor, dim), dim)


def gather(tensor: torch.Tensor, dim: int = -1) -> torch.Tensor:
    """All ranks' parts joined along `dim`; the gradient is this rank's part."""
    total = tensor.shape[dim] * get_group_size()
    return mark(model_parallel.gather(tensor, dim, total=total), dim)


def reduce(tensor: torch.Tensor) -> torch.Tensor:
    """The sum over the ranks: in place, unless the tensor takes part in differentiation. The gradient goes on as it is."""
    if torch.is_grad_enabled() and tensor.requires_grad:
        return mark(model_parallel.reduce(tensor), None)
    return mark(model_parallel.reduce(tensor, out=tensor), None)


def copy(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor as it is; its gradient is summed over the ranks."""
    return model_parallel.copy(tensor)
