# options.py: what a caller of torch.distributed asks for, besides the tensors.
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import lru_cache
from typing import Any, NamedTuple

import torch
import torch.distributed as dist

from ... import _native
from ..._errors import InvalidArgument

_OPS = {
    dist.ReduceOp.RedOpType.SUM: "sum",
    dist.ReduceOp.RedOpType.AVG: "mean",
    dist.ReduceOp.RedOpType.PRODUCT: "product",
    dist.ReduceOp.RedOpType.MIN: "min",
    dist.ReduceOp.RedOpType.MAX: "max",
    dist.ReduceOp.RedOpType.BAND: "band",
    dist.ReduceOp.RedOpType.BOR: "bor",
    dist.ReduceOp.RedOpType.BXOR: "bxor",
}


Sizes = tuple[int, ...] | None


class Options(NamedTuple):
    """The same for all verbs; what a verb does not have stays as it is here."""

    op: str = "sum"
    root: int = 0
    seconds: float | None = None  # None: the group's
    is_async: bool = True


def divides_after(options: Options, tensor: torch.Tensor) -> bool:
    """AVG of integers: the sum, and then a division that drops the rest, as NCCL has it. Tutti's own mean refuses them."""
    return options.op == "mean" and not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype is torch.bool)


def op_of(op: Any) -> str:
    """Tutti's name of a torch reduction."""
    kind = getattr(op, "op", op)
    if kind in _OPS:
        return _OPS[kind]
    if kind == dist.ReduceOp.RedOpType.PREMUL_SUM:
        factor = op.__getstate__()[1]
        if isinstance(factor, torch.Tensor) and factor.numel() != 1:
            raise InvalidArgument("backend tutti: PREMUL_SUM takes one factor, not one per element; multiply before")
        return f"premul({float(factor)!r})"
    raise InvalidArgument(f"backend tutti: there is no reduction {op}")


def _seconds(timeout: timedelta | None) -> float | None:
    seconds = timeout.total_seconds() if timeout is not None else 0
    return seconds if seconds > 0 else None  # torch says "the group's" with a negative one


def read_options(given: tuple, named: dict[str, Any]) -> Options:
    """torch has two ways to call a backend, with an options object or with plain arguments: ``allreduce([t], opts)``
    and ``allreduce(t, op, timeout)``."""
    options: dict[str, Any] = {}
    for value in (*given, *named.values()):
        if value is None:
            continue
        if isinstance(value, timedelta):
            options["seconds"] = _seconds(value)
        elif isinstance(value, (dist.ReduceOp, dist.ReduceOp.RedOpType)):
            options["op"] = op_of(value)
        elif isinstance(value, int):
            options["root"] = value
        else:
            options["seconds"] = _seconds(value.timeout)
            options["is_async"] = getattr(value, "asyncOp", True)
            if hasattr(value, "reduceOp"):
                options["op"] = op_of(value.reduceOp)
            if hasattr(value, "rootRank"):
                options["root"] = value.rootRank
    return Options(**options)


@lru_cache(maxsize=1024)
def _call(verb: str, op: str, root: int, sizes: Sizes, recv_sizes: Sizes) -> _native.Call:
    return _native.Call(verb, op=op, root=root, sizes=sizes, recv_sizes=recv_sizes)


def call_of(
    verb: str,
    options: Options = Options(),
    sizes: Sequence[int] | None = None,
    recv_sizes: Sequence[int] | None = None,
) -> _native.Call:
    """The call, from a small store of those that were made before. Equal sizes are no sizes."""
    if recv_sizes is None and sizes is not None and len(set(sizes)) == 1:
        sizes = None
    return _call(
        verb,
        options.op,
        options.root,
        None if sizes is None else tuple(sizes),
        None if recv_sizes is None else tuple(recv_sizes),
    )
