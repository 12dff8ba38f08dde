# prepared.py: prepared calls on torch tensors.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import torch

from .._errors import InvalidArgument, Unsupported
from .._native import PreparedCall
from .memory import new_result
from .running import written


class PreparedTensors:
    """A PreparedCall whose results autograd knows to have been written."""

    def __init__(self, call: Any, x: torch.Tensor, out: torch.Tensor, group: Any, timeout: Any) -> None:
        self._call = PreparedCall(group, call, x, out, timeout)

    def start(self, x: torch.Tensor | None = None, out: torch.Tensor | None = None) -> None:
        """Begins the call with the tensors it was prepared with, or with others of the same shape, strides and dtype."""
        for tensor in (x, out):
            if tensor is not None:
                _check(tensor)
        self._call.start(x, out)

    def wait(self, timeout: Any = None) -> torch.Tensor:
        """Waits for the call and gives its result."""
        return written(self._call.wait(timeout))

    def test(self) -> bool:
        """Whether it has ended, well or not, or was never started."""
        return self._call.test()

    def __repr__(self) -> str:
        return repr(self._call)


def _check(x: Any) -> None:
    if not isinstance(x, torch.Tensor):
        raise InvalidArgument(f"a prepared call on tensors got a {type(x).__qualname__}")
    if x.requires_grad and torch.is_grad_enabled():
        raise Unsupported(
            "prepared calls carry no gradients: they write the same memory again and again; use the verb itself, x.detach() "
            "or torch.no_grad()"
        )
    if x.is_conj() or x.is_neg():
        raise InvalidArgument("a conjugated or negated view cannot be prepared; pass the tensor it is a view of")


def prepare_tensors(call: Any, x: torch.Tensor, out: Any, group: Any, timeout: Any) -> PreparedTensors:
    """tutti.prepare for a tensor."""
    _check(x)
    if out is None:
        out = new_result(call, x, group)
    _check(out)
    return PreparedTensors(call, x, out, group, timeout)
