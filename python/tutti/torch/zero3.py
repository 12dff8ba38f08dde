# zero3.py: parameters that are whole only while their layer computes.
# SPDX-License-Identifier: Apache-2.0
"""A unit is a module with parameters of its own. Its chunk's memory is filled before its forward and before its
backward, and given up after each; between, every rank keeps its run only. While one unit computes, the next one's
parameters are on their way, in the order in which the units came in the first forward."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from .. import _native
from .._errors import InvalidArgument
from ._chunk import Chunk
from .gpu import flat_array
from .memory import dtype_name
from .zero import ZeroOptimizer


class _Unit:
    """The chunks of one module, and whether their parameters are whole at the moment."""

    def __init__(self, name: str):
        self.name = name
        self.chunks: list[Chunk] = []
        self.works: list[Any] = []
        self.is_whole = False
        self.is_coming = False
        self.uses = 0  # forwards under way, so that a module called inside itself is not given up too early


class Zero3Optimizer(ZeroOptimizer):
    """ZeroOptimizer(model, …, stage=3). Parameters are whole inside of forward and backward only; elsewhere, as for
    saving or counting, use `with optimizer.whole_parameters():`. What is changed there is not kept."""

    def __init__(self, params: Any, optimizer: type[torch.optim.Optimizer], *, stage: int = 3, **options: Any):
        module = params if isinstance(params, nn.Module) else options.get("module")
        if module is None:
            raise InvalidArgument("ZeroOptimizer: stage 3 works layer by layer; give it the model: module=model")
        self._unit_of: dict[int, _Unit] = {}  # by parameter
        self._units: dict[int, _Unit] = {}  # by module
        for name, part in module.named_modules():
            own = [p for p in part.parameters(recurse=False) if p.requires_grad and id(p) not in self._unit_of]
            if own:
                unit = self._units[id(part)] = _Unit(name)
                self._unit_of.update({id(p): unit for p in own})
        self._order: list[_Unit] = []
        self._is_ordered = False
        self._run_of: dict[int, torch.Tensor] = {}
        super().__init__(params, optimizer, stage=3, **options)
        # Parameters come and go in the order of the program, gradients in that of backward: numbers of their own.
        self._gather_group = self.group.subgroup(list(range(self.group.size)))
        for part in module.modules():
            units = self._units_used_by(part)
            if units:
                part.register_forward_pre_hook(lambda m, args, units=units: self._before(units))
                part.register_forward_hook(lambda m, args, out, units=units: self._after(units, out), always_call=True)

    def _units_used_by(self, part: nn.Module) -> list[_Unit]:
        """Its own, and those of parameters that it shares with modules before it."""
        known = [p for p in part.parameters(recurse=False) if id(p) in self._unit_of]
        return list(dict.fromkeys(self._unit_of[id(p)] for p in known))

    def _cut(self, parameters: list[nn.Parameter], bytes_max: int) -> list[Chunk]:
        by_unit: dict[tuple[int, str], list[nn.Parameter]] = {}
        unknown = [p for p in parameters if id(p) not in self._unit_of]
        if unknown:
            raise InvalidArgument(f"ZeroOptimizer: {len(unknown)} of the parameters are not in the model")
        for p in parameters:
            by_unit.setdefault((id(self._unit_of[id(p)]), dtype_name(p.dtype)), []).append(p)
        chunks = []
        for own in reversed(by_unit.values()):
            chunk = Chunk(own, self.group, element_wise=self.element_wise)
            self._unit_of[id(own[0])].chunks.append(chunk)
            chunks.append(chunk)
        return chunks

    @torch.no_grad()
    def _adopt(self, chunk: Chunk) -> torch.Tensor:
        chunk.flat = torch.empty(chunk.count, dtype=chunk.dtype, device=chunk.device)
        for parameter, view in zip(chunk.parameters, chunk.views(chunk.flat), strict=True):
            view.copy_(parameter)
            parameter.data = view
        run = self._run_of[id(chunk)] = chunk.own(chunk.flat).clone()
        chunk.flat.untyped_storage().resize_(0)
        return run

    # Parameters come and go.

    def _start(self, unit: _Unit) -> None:
        if unit.is_whole or unit.is_coming:
            return
        unit.is_coming = True
        for chunk in unit.chunks:
            chunk.flat.untyped_storage().resize_(chunk.nbytes)
            call = _native.Call("all_gather", uneven=True, sizes=chunk.sizes)
            run = flat_array(self._run_of[id(chunk)])
            unit.works.append(self._gather_group.start(call, run, flat_array(chunk.flat)))

    def _fetch(self, unit: _Unit) -> None:
        self._start(unit)
        self.wait_for(unit.works)
        unit.works.clear()
        unit.is_whole, unit.is_coming = True, False

    def _release(self, unit: _Unit) -> None:
        if unit.is_coming:
            self._fetch(unit)
        if unit.is_whole:
            for chunk in unit.chunks:
                chunk.flat.untyped_storage().resize_(0)
            unit.is_whole = False

    def _prefetch(self, unit: _Unit, step: int) -> None:
        if self._is_ordered and unit in self._order:
            place = self._order.index(unit) + step
            if 0 <= place < len(self._order):
                self._start(self._order[place])

    def _before(self, units: list[_Unit]) -> None:
        for unit in units:
            unit.uses += 1
            if not self._is_ordered:
                if unit in self._order and torch.is_grad_enabled() and unit is self._order[0]:
                    self._is_ordered = True
                elif unit not in self._order:
                    self._order.append(unit)
            self._fetch(unit)
            self._prefetch(unit, +1)

    def _after(self, units: list[_Unit], output: Any) -> None:
        for unit in units:
            unit.uses -= 1
            for tensor in pytree.tree_leaves(output):
                if torch.is_tensor(tensor) and tensor.requires_grad:
                    tensor.register_hook(lambda gradient, unit=unit: self._before_backward(unit))
            if unit.uses == 0:
                self._release(unit)

    def _before_backward(self, unit: _Unit) -> None:
        self._fetch(unit)
        self._prefetch(unit, -1)

    def chunk_is_through(self, chunk: Chunk) -> None:
        unit = self._unit_of[id(chunk.parameters[0])]
        if all(self._reducer.is_through(other) for other in unit.chunks):
            self._release(unit)

    def backward_is_over(self) -> None:
        self._is_ordered = True
        for unit in self._units.values():
            self._release(unit)

    def _spread(self) -> None:
        """Nothing to do: parameters are put together when they are needed."""

    @contextlib.contextmanager
    def whole_parameters(self) -> Iterator[None]:
        """Within it all parameters are whole, for saving or looking at them. Collective."""
        for unit in self._units.values():
            self._fetch(unit)
        try:
            yield
        finally:
            for unit in self._units.values():
                self._release(unit)

    def _parameter_bytes(self) -> int:
        units = [unit for unit in self._units.values() if unit.is_whole or unit.is_coming]
        whole = sum(chunk.nbytes for unit in units for chunk in unit.chunks)
        return whole + sum(run.numel() * run.element_size() for run in self._run_of.values())
