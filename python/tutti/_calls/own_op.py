# own_op.py: reductions by a function of the program's own: the arrays of all ranks are gathered, and each rank folds them.
# SPDX-License-Identifier: Apache-2.0
#
# The function is Python: it cannot run inside a plan, which moves on threads that do not hold Python's lock. So the bytes are those of
# a gather (p arrays instead of about two), and the order is that of ranks. Gradients flow where the gather and the function have them.
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._errors import InvalidArgument
from . import hints


def is_own(op: Any) -> bool:
    """Whether `op` is a function to reduce with, and not another library's name for a reduction of ours."""
    return callable(op) and not isinstance(op, type) and not hints.op_hint(op).startswith("; write")


def reduce_by(function: Callable[[Any, Any], Any], x: Any, gather: Callable[[], Any], ranks: int, out: Any, verb: str) -> Any:
    """`ranks` of the arrays that gather() stacks, combined in the order of ranks; no ranks: zeros."""
    stacked = gather()
    result = stacked[0] if ranks else stacked[0] * 0
    for rank in range(1, ranks):
        result = function(result, stacked[rank])
        if getattr(result, "shape", None) != getattr(stacked[0], "shape", None):
            raise InvalidArgument(f"{verb}: the function given as op= returned shape {getattr(result, 'shape', None)} for two arrays of "
                                  f"shape {getattr(stacked[0], 'shape', None)}; it combines two arrays to one of the same shape")
    if out is None:
        return result
    out[...] = result
    return out


def refuse_async(verb: str) -> None:
    raise InvalidArgument(f"{verb}: a function given as op= runs in this thread; call it without async_op=True")
