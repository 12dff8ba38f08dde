# zero.py: AdamW and SGD over NumPy arrays, with state and gradients shared out among the ranks.
# SPDX-License-Identifier: Apache-2.0
"""ZeRO for programs in NumPy (and C++: the kernels are the same)::

    optimizer = tutti.zero.AdamW(params, lr=1e-3, stage=2)      # params: a tree of float32 or float64 arrays
    optimizer.step(gradients, weight=len(batch))                # gradients of this rank's samples; params are changed
    in place

Each step is one fused pass over memory: mean, square, parameter."""
from __future__ import annotations

from typing import Any

import numpy as np

from . import _native
from ._arrays.tree import flatten
from ._calls.dispatch import group_or_world
from ._errors import InvalidArgument
from .adapters.numpy import unpack_into


class _Shared:
    """What the optimisers have in common: parameters of one dtype end to end, and this rank's run of them."""

    def __init__(self, params: Any, *, stage: int, group: _native.Group | None):
        if stage not in (1, 2):
            raise InvalidArgument(f"zero: stage={stage}; 1 keeps whole gradients, 2 this rank's part of them")
        self.group = group_or_world(group)
        self.stage = stage
        self._flat = flatten(params, "zero")
        leaves = self._flat.leaves
        dtypes = {leaf.dtype for leaf in leaves if isinstance(leaf, np.ndarray)}
        is_numpy = all(isinstance(leaf, np.ndarray) for leaf in leaves)
        if not is_numpy or len(dtypes) != 1 or dtypes.pop() not in ("f4", "f8"):
            raise InvalidArgument("zero: the parameters are NumPy arrays, all of float32 or all of float64")
        for leaf, path in zip(leaves, self._flat.paths, strict=True):
            if not leaf.flags.writeable or not leaf.flags.c_contiguous:
                raise InvalidArgument(f"zero: the parameter at {path} cannot be stepped in place; give a contiguous copy")
        self._dtype = leaves[0].dtype
        self.count = sum(leaf.size for leaf in leaves)
        self.sizes = _native.shard_sizes(self.count, self.group.size)
        self._begin = sum(self.sizes[: self.group.rank])
        self.steps = 0
        self._parameters = self._memory()
        np.concatenate([np.ravel(leaf) for leaf in leaves], out=self._parameters)
        self.group.run(_native.Call("broadcast"), self._parameters, self._parameters)
        unpack_into(self._parameters, leaves)
        self._gradients = self._memory()

    def _memory(self) -> np.ndarray:
        memory = self.group.memory(max(self.count, 1) * self._dtype.itemsize)
        return memory.numpy()[: self.count * self._dtype.itemsize].view(self._dtype)

    def _own(self, flat: np.ndarray) -> np.ndarray:
        return flat[self._begin : self._begin + self.sizes[self.group.rank]]

    def _mean(self, gradients: Any, weight: float | None) -> np.ndarray:
        """This rank's run of the mean gradients."""
        flat = flatten(gradients, "zero")
        if [leaf.shape for leaf in flat.leaves] != [leaf.shape for leaf in self._flat.leaves]:
            raise InvalidArgument("zero: the gradients have other shapes than the parameters")
        np.concatenate([np.ravel(leaf) for leaf in flat.leaves], out=self._gradients)
        op = "mean"
        if weight is not None:
            total = np.array([weight], np.float64)
            self.group.run(_native.Call("all_reduce"), total, total)
            if not total[0] > 0:
                raise InvalidArgument("zero: no rank has any samples: the weights add up to 0")
            op, factor = "sum", weight / total[0]
            self._gradients[:] = self._gradients * self._dtype.type(factor) if weight else 0
        if self.stage == 1:
            self.group.run(_native.Call("all_reduce", op=op), self._gradients, self._gradients)
            return self._own(self._gradients)
        run = np.empty(self.sizes[self.group.rank], self._dtype)
        self.group.run(_native.Call("reduce_scatter", op=op, sizes=self.sizes), self._gradients, run)
        return run

    def step(self, gradients: Any, *, weight: float | None = None, clip_norm: float | None = None) -> None:
        """One step. Collective. weight: this rank's samples, so that every sample counts alike; clip_norm: the most
        that the norm of all gradients together may be."""
        run = self._mean(gradients, weight)
        scale = 1.0
        if clip_norm is not None:
            square = np.array([_native.sum_of_squares(run)])
            self.group.run(_native.Call("all_reduce"), square, square)
            scale = min(1.0, clip_norm / (float(square[0]) ** 0.5 + 1e-6))
        self.steps += 1
        own = self._own(self._parameters)
        self._update(own, run, scale)
        self.group.run(_native.Call("all_gather", uneven=True, sizes=self.sizes), own, self._parameters)
        unpack_into(self._parameters, self._flat.leaves)

    def _update(self, own: np.ndarray, gradient: np.ndarray, scale: float) -> None:
        raise NotImplementedError

    def _states(self) -> dict[str, np.ndarray]:
        raise NotImplementedError

    def memory(self) -> dict[str, int]:
        """Bytes on this rank: of the optimiser's state, and of the gradients between steps' parts."""
        own = self.sizes[self.group.rank] * self._dtype.itemsize
        gradients = self.count * self._dtype.itemsize if self.stage == 1 else own
        return {"state": sum(state.nbytes for state in self._states().values()), "gradients": gradients}

    def state(self) -> dict[str, Any]:
        """For tutti.checkpoint: this rank's part of the state, loadable on any number of ranks."""
        from .checkpoint import Sharded

        return {"steps": self.steps, **{name: Sharded(state, self.count) for name, state in self._states().items()}}

    def load(self, state: dict[str, Any]) -> None:
        """Takes what checkpoint.load(…, like=optimizer.state()) gave."""
        self.steps = state["steps"]
        for name, own in self._states().items():
            own[:] = state[name]


class AdamW(_Shared):
    """Adam with decoupled weight decay; the arguments are those of torch.optim.AdamW."""

    def __init__(
        self, params: Any, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 1e-2, *, stage: int = 2, group: _native.Group | None = None,
    ):
        super().__init__(params, stage=stage, group=group)
        self.lr, self.betas, self.eps, self.weight_decay = lr, betas, eps, weight_decay
        self._mean_run = np.zeros(self.sizes[self.group.rank], self._dtype)
        self._square_run = np.zeros_like(self._mean_run)

    def _states(self) -> dict[str, np.ndarray]:
        return {"mean": self._mean_run, "square": self._square_run}

    def _update(self, own: np.ndarray, gradient: np.ndarray, scale: float) -> None:
        _native.adamw_step(
            own, gradient, self._mean_run, self._square_run, step=self.steps, lr=self.lr, beta1=self.betas[0],
            beta2=self.betas[1], eps=self.eps, weight_decay=self.weight_decay, gradient_scale=scale,
        )


class SGD(_Shared):
    """Stochastic gradient descent; the arguments are those of torch.optim.SGD."""

    def __init__(
        self, params: Any, lr: float = 1e-3, momentum: float = 0.0, dampening: float = 0.0, weight_decay: float = 0.0,
        nesterov: bool = False, *, stage: int = 2, group: _native.Group | None = None,
    ):
        super().__init__(params, stage=stage, group=group)
        self.lr, self.momentum, self.dampening = lr, momentum, dampening
        self.weight_decay, self.nesterov = weight_decay, nesterov
        self._velocity = np.zeros(self.sizes[self.group.rank] if momentum else 0, self._dtype)

    def _states(self) -> dict[str, np.ndarray]:
        return {"velocity": self._velocity} if self.momentum else {}

    def _update(self, own: np.ndarray, gradient: np.ndarray, scale: float) -> None:
        _native.sgd_step(
            own, gradient, self._velocity if self.momentum else None, lr=self.lr, momentum=self.momentum,
            dampening=self.dampening, weight_decay=self.weight_decay, nesterov=self.nesterov, is_first=self.steps == 1,
            gradient_scale=scale,
        )
