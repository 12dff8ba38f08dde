# _marks.py: how a tensor is split, noted on the tensor itself, as TorchShard does.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import torch


def mark(tensor: torch.Tensor, dim: int | None, order_type: int = 0) -> Any:
    """Notes how the layer of this tensor is split; gives the tensor back."""
    tensor.parallel_dim = dim  # type: ignore[attr-defined]
    tensor.order_type = order_type  # type: ignore[attr-defined]
    return tensor


def get_parallel_dim(tensor: torch.Tensor) -> int | None:
    """0: by rows, 1 or −1: by columns, None: whole."""
    return getattr(tensor, "parallel_dim", None)


def ignore_split_parameters(module: torch.nn.Module) -> list[str]:
    """DistributedDataParallel would give every rank the parts of rank 0, and average them."""
    names = [name for name, parameter in module.named_parameters() if get_parallel_dim(parameter) is not None]
    module._ddp_params_and_buffers_to_ignore = names  # type: ignore[assignment]
    return names


def is_split_by_columns(tensor: torch.Tensor) -> bool:
    return get_parallel_dim(tensor) in (1, -1)


def split_axis(parameter: torch.Tensor) -> int | None:
    """The axis of a parameter along which it is split. A linear layer's weight has its axes the other way round than its
    arguments (order_type 0), an embedding's has not (1); the bias of a layer that is split by rows is whole."""
    dim = get_parallel_dim(parameter)
    if dim is None:
        return None
    columns = dim in (1, -1)
    if getattr(parameter, "order_type", 0) == 1:
        return 1 if columns else 0
    return 0 if columns else 1 if parameter.dim() == 2 else None
