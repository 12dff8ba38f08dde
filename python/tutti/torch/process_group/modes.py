# modes.py: calls on tensors that only look like tensors, for the modes of torch that stand behind them.
# SPDX-License-Identifier: Apache-2.0
"""torch's own process groups make an operator (c10d::allreduce_, …) of every call, and modes such as DTensor's
LocalTensorMode or FakeTensorMode answer it themselves. A group that is a class of Python is called directly, past all
modes. Where a mode is on and the tensors are of its kind, the call is handed to a plain group of torch's, which has the
same ranks and no backend: the mode answers it, as it would beside gloo. CommDebugMode, which only counts collectives, is
shown the operator that torch would have made of the call."""
from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d
from torch.utils import _python_dispatch as dispatch

_modes = torch._C._len_torch_dispatch_stack
_PLAIN_TYPES = (torch.Tensor, torch.nn.Parameter)
_OPERATORS = {  # by the method of the group, where the name is not the method's with an underscore
    "all_gather_single": "_allgather_base_",
    "all_gather_single_coalesced": "allgather_into_tensor_coalesced_",
    "reduce_scatter_single": "_reduce_scatter_base_",
    "reduce_scatter_single_coalesced": "reduce_scatter_tensor_coalesced_",
    "all_to_all_single": "alltoall_base_",
    "send": "send",
    "recv_anysource": "recv_any_source_",
}


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _tensors(part)


class ShownToModes:
    """What ProcessGroup is for modes."""

    _plain: dist.ProcessGroup | None = None

    def _shown(self, given: Any) -> dist.ProcessGroup | None:
        """The group to call instead, if a mode has to see this call; None if not."""
        if all(type(tensor) in _PLAIN_TYPES for tensor in _tensors(given)):
            return None
        if self._plain is None:
            self._plain = dist.ProcessGroup(self.rank(), self.size())
            self._plain._set_group_name(self.getGroupName())
        c10d._world.pg_group_ranks[self._plain] = c10d._world.pg_group_ranks[self]
        return self._plain


class _Operator:
    """What CommDebugMode sees of a call: the operator of its kind. Called, it makes the call."""

    def __init__(self, method_name: str, run: Callable[[], Any]) -> None:
        self._overloadpacket = getattr(torch.ops.c10d, _OPERATORS.get(method_name, method_name + "_"))
        self._run = run

    def __call__(self, *_: Any, **__: Any) -> Any:
        with dispatch._disable_current_modes():  # as they are while an operator runs
            return self._run()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._overloadpacket.default, name)


def _counting_mode() -> Any:
    """The innermost mode, if it is CommDebugMode; None if not."""
    counting = sys.modules.get("torch.distributed.tensor.debug._comm_mode")
    mode = dispatch._get_current_dispatch_mode()
    return mode if counting is not None and isinstance(mode, counting.CommDebugMode) else None


def shown_to_modes(method: Callable) -> Callable:
    """A method of the group that makes way where a mode has to see the call. torch's own has the same name."""
    name = method.__name__

    @functools.wraps(method)
    def call(self: ShownToModes, *given: Any, **named: Any) -> Any:
        if not _modes():
            return method(self, *given, **named)
        if (shown := self._shown(given)) is not None:
            return getattr(shown, name)(*given, **named)
        if (mode := _counting_mode()) is not None:
            return mode.__torch_dispatch__(_Operator(name, lambda: method(self, *given, **named)), ())
        return method(self, *given, **named)

    return call
