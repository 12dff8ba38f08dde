# _reductions.py: Horovod's reductions and compressions.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import enum
from typing import Any

import torch

from ..._errors import InvalidArgument


class ReduceOp(enum.Enum):
    """Horovod's names of reductions; the values are ours."""

    AVERAGE = "mean"
    SUM = "sum"
    MIN = "min"
    MAX = "max"
    PRODUCT = "product"


Average, Sum, Min, Max, Product = ReduceOp.AVERAGE, ReduceOp.SUM, ReduceOp.MIN, ReduceOp.MAX, ReduceOp.PRODUCT


def reduction_of(average: bool | None, op: ReduceOp | None) -> str:
    """Our name of what the two arguments say; `average` is the older one."""
    if average is not None and op is not None:
        raise InvalidArgument("horovod: average= and op= were both given; op= says it all")
    if op is not None and not isinstance(op, ReduceOp):
        raise InvalidArgument(f"horovod: op={op!r} is none of hvd.Average, hvd.Sum, hvd.Min, hvd.Max, hvd.Product")
    if op is None:
        op = Sum if average is False else Average
    return op.value


class _Whole:
    """Nothing is made smaller."""

    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        return tensor, None

    @staticmethod
    def decompress(tensor: torch.Tensor, context: Any) -> torch.Tensor:
        return tensor


class _Half:
    """Floats travel with 16 bits."""

    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        return (tensor.half(), tensor.dtype) if tensor.is_floating_point() else (tensor, tensor.dtype)

    @staticmethod
    def decompress(tensor: torch.Tensor, context: Any) -> torch.Tensor:
        return tensor.to(context)


class Compression:
    """What DistributedOptimizer and allreduce take for compression=."""

    none = _Whole
    fp16 = _Half
