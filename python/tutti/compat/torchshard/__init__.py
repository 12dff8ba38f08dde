# __init__.py: TorchShard's names: ``import tutti.compat.torchshard as ts``.
# SPDX-License-Identifier: Apache-2.0
"""Layers whose weights are split over the ranks of a group, as TorchShard calls them. Behind them is tutti.model_parallel."""
from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import torch

from . import distributed, nn
from ._marks import get_parallel_dim, ignore_split_parameters, mark, split_axis

_PARALLEL_DIM, _ORDER_ATTR = "parallel_dim", "order_type"  # the names of a tensor's marks, which programs look up

__all__ = [
    "collect_state_dict", "distributed", "get_parallel_dim", "nn", "register_ddp_parameters_to_ignore",
    "register_parallel_attribute", "register_parallel_dim", "relocate_state_dict", "set_attribute", "slice",
]


def slice(tensor: torch.Tensor, num_partitions: int, dim: int | None = None, contiguous: bool = False) -> tuple[torch.Tensor, ...]:
    """The tensor in equal parts along `dim` (the last one unless given)."""
    dim = -1 if dim is None else dim
    length = distributed.divide(tensor.shape[dim], num_partitions)
    parts = torch.split(tensor, length, dim=dim)
    return tuple(part.contiguous() for part in parts) if contiguous else parts


def set_attribute(tensor: torch.Tensor, value: int | None = None, order_type: int = 0) -> None:
    """Notes how a tensor is split: 0 by rows, 1 or −1 by columns, None not at all."""
    mark(tensor, value, order_type)


register_parallel_attribute = set_attribute


def register_parallel_dim(tensor: torch.Tensor, value: int | None = None) -> None:
    """The same, for a tensor whose axes are those of its layer."""
    mark(tensor, value)


def register_ddp_parameters_to_ignore(module: torch.nn.Module) -> list[str]:
    """Tells DistributedDataParallel which parameters are split, so that it does not average them."""
    return ignore_split_parameters(module)


def _split_axes(model: torch.nn.Module) -> dict[str, int]:
    """By the names of the parameters that are split: along which axis."""
    axes = {name: split_axis(parameter) for name, parameter in model.named_parameters()}
    return {name: axis for name, axis in axes.items() if axis is not None}


def collect_state_dict(model: torch.nn.Module, state_dict: Mapping[str, Any], prefix: str = "") -> "OrderedDict[str, Any]":
    """The state with the parts of all ranks joined, on every rank. Collective."""
    axes = _split_axes(model)
    with torch.no_grad():
        return OrderedDict(
            (prefix + name, distributed.gather(value, axes[name]) if name in axes else value) for name, value in state_dict.items()
        )


def relocate_state_dict(model: torch.nn.Module, state_dict: Mapping[str, Any], prefix: str = "") -> "OrderedDict[str, Any]":
    """Of a state that is whole, what this rank's layers hold."""
    axes = _split_axes(model)
    with torch.no_grad():
        return OrderedDict(
            (prefix + name, distributed.scatter(value, axes[name]) if name in axes else value) for name, value in state_dict.items()
        )
