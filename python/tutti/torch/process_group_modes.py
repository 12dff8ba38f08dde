# process_group_modes.py: calls on tensors that only look like tensors, for the modes of torch that stand behind them.
# SPDX-License-Identifier: Apache-2.0
"""torch's own process groups make an operator (c10d::allreduce_, …) of every call, and modes such as DTensor's
LocalTensorMode or FakeTensorMode answer it themselves. A group that is a class of Python is called directly, past all
modes. Where a mode is on and the tensors are of its kind, the call is handed to a plain group of torch's, which has the
same ranks and no backend: the mode answers it, as it would beside gloo."""
from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

_modes = torch._C._len_torch_dispatch_stack
_PLAIN_TYPES = (torch.Tensor, torch.nn.Parameter)


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


def shown_to_modes(method: Callable) -> Callable:
    """A method of the group that makes way where a mode has to see the call. torch's own has the same name."""
    name = method.__name__

    @functools.wraps(method)
    def call(self: ShownToModes, *given: Any, **named: Any) -> Any:
        if _modes() and (shown := self._shown(given)) is not None:
            return getattr(shown, name)(*given, **named)
        return method(self, *given, **named)

    return call
