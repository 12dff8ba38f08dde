# zero.py: an optimiser whose state, and in later stages gradients and parameters, are shared out among the ranks.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from torch import nn

from .. import _native
from .._errors import InvalidArgument
from . import _amp
from ._bucket import broadcast_tensors, check_devices
from ._chunk import Chunk, make_chunks
from ._inner_optimizer import ELEMENT_WISE, checked_name
from ._reducer import Reducer
from ._same_tensors import check_same_tensors
from .clipping import scale_to, squares_of

# How much is laid end to end and travels at once. Each rank holds up to three chunks' gradients whole during backward, and
# what was just written is still in its processor's cache when it is sent.
CHUNK_BYTES_MAX = 8 << 20

_amp.install()


class ZeroOptimizer(torch.optim.Optimizer):
    """Any optimiser, with its state shared out among the ranks (Rajbhandari et al. 2020)::

        opt = tutti.torch.ZeroOptimizer(model.parameters(), torch.optim.AdamW, stage=2, lr=1e-3)
        loss.backward()
        opt.step()                # gradients averaged over the ranks; each steps its part; parameters the same again

    stage 1: each rank keeps the optimiser's state of its part only.
    stage 2: and the averaged gradients of its part only, which are sent off while backward goes on; `p.grad` is None
        then.
    stage 3: and the parameters of its part only: each layer's are put together for its forward and again for its
        backward, the next layer's meanwhile, and given up afterwards. Needs the model: module=model, or the model for
        `params`.

    params: parameters or param groups, as torch.optim takes them. Every rank starts with rank 0's values; shapes or
        dtypes that differ raise Mismatch, which names the first.
    optimizer: a class of torch.optim or one like it; `options` are its arguments. Element-wise ones (Adam, AdamW, SGD,
        …) are cut anywhere; others get whole parameters. element_wise=True says so of a class that is not known here.
    bucket_bytes: how much of the gradients and parameters travels at once.
    group: the ranks that share; the world unless given. In stage 1, parameters of a DataParallel are not averaged
        again.

    Learning-rate schedulers work as usual, and so does torch.amp.GradScaler: an infinity on one rank makes all of them
    skip the step. `memory()` tells what this rank holds, `waited_in_all` for how many seconds
    it has done nothing but wait for gradients and parameters; `collect_state_dict()` gives the state that the plain
    optimiser would have.
    """

    def __new__(cls, *args: Any, stage: int = 2, **options: Any) -> "ZeroOptimizer":
        if stage not in (1, 2, 3):
            raise InvalidArgument(f"ZeroOptimizer: there is no stage {stage}: 1 is of the state, 2 of gradients, 3 of all")
        if stage == 3 and cls is ZeroOptimizer:
            from .zero3 import Zero3Optimizer as cls
        return super().__new__(cls)

    def __init__(
        self, params: Any, optimizer: type[torch.optim.Optimizer], *, stage: int = 2, group: Any = None,
        module: nn.Module | None = None, bucket_bytes: int = CHUNK_BYTES_MAX, element_wise: bool | None = None,
        **options: Any,
    ):
        name = checked_name(optimizer)
        if isinstance(params, nn.Module):
            params, module = params.parameters(), params
        super().__init__(params, options)
        self.module = module
        members = _native.world() if group is None else group
        self.group = members.subgroup(list(range(members.size)))
        self.stage = stage
        self.waited_in_all = 0.0
        self.element_wise = name in ELEMENT_WISE if element_wise is None else element_wise
        parameters = [p for outer in self.param_groups for p in outer["params"] if p.requires_grad]
        check_devices(parameters, "ZeroOptimizer")
        check_same_tensors("ZeroOptimizer", self._named(parameters), self.group)
        self._averages = not all(getattr(p, "tutti_averaged", False) for p in parameters)
        broadcast_tensors(parameters, self.group)
        self._groups = [
            self._cut([p for p in outer["params"] if p.requires_grad], bucket_bytes) for outer in self.param_groups
        ]
        self._runs = {id(chunk): [nn.Parameter(x) for x in chunk.owned(self._adopt(chunk))] for chunk in self.chunks}
        inner_groups = []
        for outer, chunks in zip(self.param_groups, self._groups, strict=True):
            fields = {key: value for key, value in outer.items() if key != "params"}
            inner_groups.append({**fields, "params": [run for chunk in chunks for run in self._runs[id(chunk)]]})
        self.inner = optimizer(inner_groups, **options)
        for outer, inner in zip(self.param_groups, self.inner.param_groups, strict=True):
            outer.update({key: value for key, value in inner.items() if key != "params"})
        self._gradients: dict[int, torch.Tensor] = {}  # by chunk: this rank's run
        self._are_spoiled = False  # a GradScaler found an infinity in them: the next backward begins anew
        self._flats: dict[int, torch.Tensor] = {}  # by chunk: the whole gradients (stage 1)
        self._reducer = Reducer(self) if stage > 1 else None

    def _named(self, parameters: list[nn.Parameter]) -> list[tuple[str, nn.Parameter]]:
        """With the names that the module has for them, or their places."""
        names = {id(p): name for name, p in self.module.named_parameters()} if self.module is not None else {}
        return [(names.get(id(p), f"parameter {place}"), p) for place, p in enumerate(parameters)]

    def _cut(self, parameters: list[nn.Parameter], bytes_max: int) -> list[Chunk]:
        return make_chunks(parameters, self.group, bytes_max, element_wise=self.element_wise)

    def _adopt(self, chunk: Chunk) -> torch.Tensor:
        """Moves the parameters of a chunk together; gives this rank's run of them."""
        chunk.adopt()
        return chunk.own(chunk.flat)

    @property
    def chunks(self) -> list[Chunk]:
        """All chunks, group after group."""
        return [chunk for chunks in self._groups for chunk in chunks]

    # A step.

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Averages the gradients, steps this rank's part, and brings all parameters up to date. Collective."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self.finish_gradients()
        for outer, inner in zip(self.param_groups, self.inner.param_groups, strict=True):
            inner.update({key: value for key, value in outer.items() if key != "params"})
        self.inner.step()
        self._spread()
        self._gradients.clear()
        return loss

    def _spread(self) -> None:
        """After a step: everybody's run to everybody."""
        self.wait_for([chunk.start_gather() for chunk in self.chunks])

    def wait_for(self, works: Iterable[Any]) -> None:
        """Waits for calls under way and counts the time."""
        begin = time.perf_counter()
        for work in works:
            work.wait()
        self.waited_in_all += time.perf_counter() - begin

    def finish_gradients(self) -> None:
        """Waits until this rank has the averaged gradients of its part, as step() and clip_grad_norm_() do."""
        if self._reducer is not None:
            self._reducer.finish()
        elif not self._gradients:
            self._average_at_once()
        for chunk in self.chunks:
            run = self._gradients.get(id(chunk))
            parts = chunk.owned(run) if run is not None else []
            for place, parameter in enumerate(self._runs[id(chunk)]):
                parameter.grad = parts[place] if parts else None

    def unscale_gradients(self, unscale_whole: Callable, inverse_scale: torch.Tensor, allow_fp16: bool) -> _amp.Found:
        """For GradScaler: divides the gradients by its scale; tells it what any rank found. Collective.

        unscale_whole: what GradScaler would do by itself, with p.grad, where stage 1 has them."""
        if self._reducer is None:
            self.forget_spoiled()
            mine = unscale_whole()
        else:
            self.finish_gradients()
            mine = _amp.unscale_runs(list(self._gradients.values()), inverse_scale, allow_fp16)
        found = _amp.agree(mine, self.group)
        self._are_spoiled = any(float(value) for value in found.values())
        return found

    def forget_spoiled(self) -> None:
        """When backward begins: gradients for which a GradScaler skipped the step are not added to."""
        if self._are_spoiled:
            self._gradients.clear()
            self._are_spoiled = False

    def _average_at_once(self) -> None:
        """Stage 1: whole gradients lie in p.grad."""
        works = []
        for chunk in self.chunks:
            if not self._has_gradient(chunk):
                continue
            flat = self._flat_gradients(chunk)
            if not self._averages:
                self._gradients[id(chunk)] = chunk.own(flat)
                continue
            run = self._gradients[id(chunk)] = chunk.new_run()
            works.append(chunk.start_reduce(flat, run, "mean"))
        self.wait_for(works)

    def _flat_gradients(self, chunk: Chunk) -> torch.Tensor:
        """The gradients end to end; from then on they are there, so that they do not take their memory twice."""
        if id(chunk) not in self._flats:
            self._flats[id(chunk)] = chunk.new_flat()
        flat = self._flats[id(chunk)]
        for parameter, view in zip(chunk.parameters, chunk.views(flat), strict=True):
            if parameter.grad is None:
                view.zero_()
            elif parameter.grad.data_ptr() != view.data_ptr():
                view.copy_(parameter.grad)
                parameter.grad = view
        return flat

    def _has_gradient(self, chunk: Chunk) -> bool:
        """Whether any rank has; they have to agree on what they reduce."""
        has = np.array([any(p.grad is not None for p in chunk.parameters)], np.uint8)
        self.group.run(_native.Call("all_reduce", op="max"), has, has)
        return bool(has[0])

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets the gradients, also those that were shared out."""
        super().zero_grad(set_to_none)
        if hasattr(self, "_gradients"):
            if self._reducer is not None:
                self._reducer.finish()
            self._gradients.clear()

    @torch.no_grad()
    def clip_grad_norm_(self, max_norm: float) -> torch.Tensor:
        """Scales the averaged gradients so that their 2-norm over all ranks' parts is at most `max_norm`; gives the
        norm before. Collective."""
        self.finish_gradients()
        runs = list(self._gradients.values())
        square = np.array([squares_of(runs)])
        self.group.run(_native.Call("all_reduce"), square, square)
        return scale_to(runs, float(square[0]) ** 0.5, max_norm)

    def chunk_is_through(self, chunk: Chunk) -> None:
        """Backward needs the chunk's parameters no more."""

    def backward_is_over(self) -> None:
        """All gradients have come, or will not."""

    # What it holds.

    def memory(self) -> dict[str, int]:
        """Bytes on this rank: of parameters, of gradients kept after backward, of the optimiser's state."""
        state = [v for s in self.inner.state.values() for v in s.values() if torch.is_tensor(v) and v.dim() > 0]
        whole = [p.grad for chunk in self.chunks for p in chunk.parameters if p.grad is not None]
        runs = [run for run in self._gradients.values() if self.stage > 1]
        return {
            "parameters": self._parameter_bytes(),
            "gradients": sum(g.numel() * g.element_size() for g in (*whole, *runs)),
            "state": sum(v.numel() * v.element_size() for v in state),
        }

    def _parameter_bytes(self) -> int:
        return sum(chunk.nbytes for chunk in self.chunks)

    def collect_state_dict(self) -> dict[str, Any]:
        """The state_dict that the plain optimiser would have, on every rank. Collective. It loads into the plain
        optimiser, and by load_collected_state_dict into a ZeroOptimizer on any number of ranks."""
        from ._zero_state import collect

        return collect(self)

    def load_collected_state_dict(self, state: dict[str, Any]) -> None:
        """Takes this rank's part of a plain optimiser's state_dict."""
        from ._zero_state import load

        load(self, state)

    def state_dict(self) -> dict[str, Any]:
        """The same as collect_state_dict(): collective, so that a checkpoint does not depend on the number of ranks."""
        return self.collect_state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """The same as load_collected_state_dict()."""
        self.load_collected_state_dict(state_dict)
