# _chunk.py: parameters laid end to end, each rank owning a part: what ZeroOptimizer shards.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from .. import _native
from ._bucket import shared_memory
from .gpu import flat_array
from .memory import dtype_name


class Chunk:
    """Parameters of one dtype, end to end in one flat tensor; rank r owns a run of `sizes[r]` elements of it.

    Element-wise optimisers step on the run as it is, across parameters. The others get whole parameters: then the
    parameters are ordered by owner, and each run consists of whole ones.
    """

    def __init__(self, parameters: Sequence[nn.Parameter], group: Any, *, element_wise: bool):
        self.group = group
        if element_wise:
            self.parameters = list(parameters)
            self.sizes = _native.shard_sizes(sum(p.numel() for p in parameters), group.size)
            self.owners: list[int] | None = None
        else:
            self.parameters, self.owners, self.sizes = _by_owner(parameters, group.size)
        self.dtype, self.device = self.parameters[0].dtype, self.parameters[0].device
        self.count = sum(self.sizes)
        self.begin = sum(self.sizes[: group.rank])
        self.length = self.sizes[group.rank]
        self.offsets = [sum(p.numel() for p in self.parameters[:i]) for i in range(len(self.parameters))]
        self._gather = _native.Call("all_gather", uneven=True, sizes=self.sizes)
        self._reduce_scatter = {
            op: _native.Call("reduce_scatter", op=op, sizes=self.sizes) for op in ("sum", "mean")
        }

    @property
    def nbytes(self) -> int:
        return self.count * self.dtype.itemsize

    def views(self, flat: torch.Tensor) -> list[torch.Tensor]:
        """Each parameter's part of a flat tensor, in its shape."""
        pairs = zip(self.offsets, self.parameters, strict=True)
        return [flat[begin : begin + p.numel()].view(p.shape) for begin, p in pairs]

    def view(self, flat: torch.Tensor, place: int) -> torch.Tensor:
        """One of them."""
        parameter = self.parameters[place]
        return flat[self.offsets[place] :][: parameter.numel()].view(parameter.shape)

    def own(self, flat: torch.Tensor) -> torch.Tensor:
        """This rank's run of a flat tensor."""
        return flat[self.begin : self.begin + self.length]

    def new_flat(self) -> torch.Tensor:
        """Memory for what belongs to all parameters, end to end."""
        return shared_memory(self.count, self.dtype, self.group, self.device)

    def new_run(self) -> torch.Tensor:
        """Memory for what belongs to this rank's run."""
        return torch.empty(self.length, dtype=self.dtype, device=self.device)

    @torch.no_grad()
    def adopt(self) -> None:
        """Moves the parameters into one flat tensor in memory of the group."""
        self.flat = self.new_flat()
        for parameter, view in zip(self.parameters, self.views(self.flat), strict=True):
            view.copy_(parameter)
            parameter.data = view

    def owned(self, run: torch.Tensor) -> list[torch.Tensor]:
        """This rank's run as the optimiser sees it: in one piece, or as whole parameters."""
        if self.owners is None:
            return [run]
        mine = [i for i, owner in enumerate(self.owners) if owner == self.group.rank]
        return [
            run[self.offsets[i] - self.begin :][: self.parameters[i].numel()].view(self.parameters[i].shape) for i in mine
        ]

    def start_gather(self) -> Any:
        """Everybody's run to everybody, in place."""
        return self.group.start(self._gather, flat_array(self.own(self.flat)), flat_array(self.flat))

    def start_reduce(self, gradients: torch.Tensor, run: torch.Tensor, op: str) -> Any:
        """The ranks' gradients summed up or averaged, each rank getting its run."""
        return self.group.start(self._reduce_scatter[op], flat_array(gradients), flat_array(run))

    def gather_run(self, run: torch.Tensor) -> torch.Tensor:
        """All runs of some state of the optimiser, end to end. Collective."""
        flat = run.new_empty(self.count)
        self.group.run(self._gather, flat_array(run.contiguous()), flat_array(flat))
        return flat


def _by_owner(parameters: Sequence[nn.Parameter], size: int) -> tuple[list[nn.Parameter], list[int], list[int]]:
    """Deals out whole parameters, the largest first, each to the rank that has least; in the order of their owners."""
    load = [0] * size
    owner_of = {}
    for place in sorted(range(len(parameters)), key=lambda i: (-parameters[i].numel(), i)):
        owner = min(range(size), key=lambda rank: (load[rank], rank))
        owner_of[place] = owner
        load[owner] += parameters[place].numel()
    order = sorted(owner_of, key=lambda place: (owner_of[place], place))
    return [parameters[place] for place in order], [owner_of[place] for place in order], load


def make_chunks(
    parameters: Sequence[nn.Parameter], group: Any, bytes_max: int, *, element_wise: bool
) -> list[Chunk]:
    """Chunks of one param group, in the order in which backward reaches them."""
    items = [(p.numel() * p.element_size(), dtype_name(p.dtype)) for p in parameters]
    order = list(range(len(parameters) - 1, -1, -1))
    plan = _native.plan_buckets(items, order, bytes_max, bytes_max)
    return [Chunk([parameters[i] for i in places], group, element_wise=element_wise) for places in plan]
