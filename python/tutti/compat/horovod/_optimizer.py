# _optimizer.py: Horovod's DistributedOptimizer: an optimizer whose step() first averages the gradients over the ranks.
# SPDX-License-Identifier: Apache-2.0
"""All gradients travel when step() is called, fused into few messages, in the order of the parameters: ranks may use different
parameters. Horovod begins during backward; here tutti.torch.DataParallel does that."""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from ..._calls import verbs
from ..._errors import InvalidArgument
from ._process_sets import ProcessSet, global_process_set
from ._reductions import Average, Compression, reduction_of


class _Averaging:
    """What is put before the methods of the optimizer's own class."""

    param_groups: list[dict[str, Any]]
    _hvd: dict[str, Any]

    def _with_gradients(self) -> list[torch.Tensor]:
        return [p for group in self.param_groups for p in group["params"] if p.requires_grad]

    def synchronize(self) -> None:
        """Averages the gradients now, so that they can be clipped before step()."""
        settings = self._hvd
        parameters = self._with_gradients()
        for each in parameters:
            if each.grad is None:
                each.grad = torch.zeros_like(each)
        packed = [settings["compression"].compress(each.grad) for each in parameters]
        before = settings["predivide"]
        small = [part / before if before != 1.0 else part for part, _ in packed]
        with torch.no_grad():
            sums = verbs.all_reduce(small, op=settings["op"], group=settings["process_set"].group)
            for each, (_, context), total in zip(parameters, packed, sums, strict=True):
                whole = settings["compression"].decompress(total, context)
                each.grad.copy_(whole * before if before != 1.0 else whole)
        settings["synchronized"] = True

    @contextlib.contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """step() inside of it uses the gradients as they are, after synchronize()."""
        self._hvd["skip"] = True
        try:
            yield
        finally:
            self._hvd["skip"] = False

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Averages the gradients and updates the parameters."""
        if not self._hvd["skip"]:
            loss = None
            if closure is not None:
                with torch.enable_grad():
                    loss = closure()
            self.synchronize()
            super().step()  # type: ignore[misc]
            self._hvd["synchronized"] = False
            return loss
        if not self._hvd["synchronized"]:
            raise InvalidArgument("horovod: step() inside skip_synchronize() without synchronize() before it")
        self._hvd["synchronized"] = False
        return super().step(closure)  # type: ignore[misc]


def DistributedOptimizer(
    optimizer: torch.optim.Optimizer, named_parameters: Iterable[tuple[str, torch.Tensor]] | None = None,
    compression: Any = Compression.none, backward_passes_per_step: int = 1, op: Any = Average,
    gradient_predivide_factor: float = 1.0, num_groups: int = 0, groups: Any = None, sparse_as_dense: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """The same optimizer, which averages the gradients over the ranks before each step. Collective in step() only.

    named_parameters, num_groups, groups, sparse_as_dense: taken, and nothing depends on them.
    backward_passes_per_step: gradients of so many backward passes add up before step(); nothing is sent until then."""
    if named_parameters is not None:
        names = [name for name, _ in named_parameters]
        if len(set(names)) != len(names):
            raise InvalidArgument("horovod: named_parameters has names twice; give model.named_parameters()")
    if backward_passes_per_step < 1:
        raise InvalidArgument(f"horovod: backward_passes_per_step={backward_passes_per_step} is less than 1")
    kind = type(optimizer)
    optimizer.__class__ = type(kind.__name__, (_Averaging, kind), {})
    optimizer._hvd = {  # type: ignore[attr-defined]
        "compression": compression, "op": reduction_of(None, op), "predivide": gradient_predivide_factor, "process_set": process_set,
        "skip": False, "synchronized": False,
    }
    return optimizer
