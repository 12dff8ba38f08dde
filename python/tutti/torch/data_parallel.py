# data_parallel.py: a torch module that is trained on many ranks as it would be on one.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Never

import numpy as np
import torch
from torch import nn

from .. import _native
from .._calls.dispatch import group_or_world, refuse_keywords
from .._errors import InvalidArgument, Unsupported
from . import sparse_gradients, sync_batch_norm
from ._bucket import BYTES_MAX, Bucket, FIRST_BYTES_MAX, broadcast_tensors, check_devices, make_buckets
from ._same_tensors import check_same_tensors
from .compression import Hook, hook_from
from .timeline import Timeline

_BROADCAST = _native.Call("broadcast")
_ALL_GATHER = _native.Call("all_gather")
_ANY = _native.Call("all_reduce", op="max")


class DataParallel(nn.Module):
    """Averages the gradients of a module over the ranks while backward is still computing the others::

        model = tutti.torch.DataParallel(model)
        for x, y in batches:
            optimizer.zero_grad()
            loss_of(model(x), y).backward()      # afterwards every rank has the mean gradients
            optimizer.step()

    Parameters and buffers start as rank 0 has them. Gradients travel in buckets, in the order in which they became
    ready in the first step. A parameter that some rank does not use counts as 0 there; one that no rank uses keeps the
    gradient it had. Of embeddings with sparse=True only the rows with gradients travel. Layers of torch.nn.SyncBatchNorm
    become those of tutti.torch.SyncBatchNorm, over the ranks of the group.

    module: the same on every rank: names, shapes and dtypes are compared, and Mismatch names the first that differs.
    group: the ranks to average over; the world unless given (model_parallel.data_group(), or an axis of a Mesh).
    bucket_bytes, first_bucket_bytes: how much travels at once; the first bucket is small, so that it starts early.
    broadcast_buffers: rank 0's buffers (running statistics) go to all before each training forward.
    hook: what travels: "bf16", "fp16", "int8" (error feedback), "powersgd", or a function; see tutti.torch.compression.
    """

    def __init__(
        self, module: nn.Module, *, group: Any = None, bucket_bytes: int = BYTES_MAX,
        first_bucket_bytes: int = FIRST_BYTES_MAX, broadcast_buffers: bool = True, hook: str | Hook | None = None, **others: Never,
    ):
        if others:
            refuse_keywords(type(self), others)
        super().__init__()
        members = group_or_world(group)
        # Backward calls when its gradients are ready, in between whatever else the program calls: numbers of its own.
        self.group = members.subgroup(list(range(members.size)))
        self.module = module
        self.timeline = Timeline()
        self._hook = hook_from(hook)
        self._limits = (bucket_bytes, first_bucket_bytes)
        self._broadcast_buffers = broadcast_buffers
        self._sparse = sparse_gradients.SparseGradients(sparse_gradients.find(module), self.group)
        sparse = {id(parameter) for parameter in self._sparse.parameters}
        self._parameters_used = [p for p in module.parameters() if p.requires_grad and id(p) not in sparse]
        if not self._parameters_used and not sparse:
            raise InvalidArgument("DataParallel: no parameter of the module requires a gradient")
        check_devices(self._parameters_used, "DataParallel")
        check_same_tensors("DataParallel", [*module.named_parameters(), *module.named_buffers()], self.group)
        self._normalised_together = sync_batch_norm.find(module)
        if self._normalised_together:  # they call in forward and backward, at times of their own
            sync_batch_norm.adopt(self._normalised_together, members.subgroup(list(range(members.size))))
        self.synchronize()
        self._order = list(range(len(self._parameters_used) - 1, -1, -1))
        self._is_reordered = False
        self._make_buckets()
        self._syncs = True
        self._is_open = False  # a backward is under way
        self._joined: _Join | None = None
        self._factor: float | None = None
        self._finishes: list[Any] = []
        for index, parameter in enumerate(self._parameters_used):
            parameter.tutti_averaged = True
            parameter.register_post_accumulate_grad_hook(lambda p, index=index: self._ready(index))
        for parameter in self._sparse.parameters:
            parameter.tutti_averaged = True
            parameter.register_post_accumulate_grad_hook(lambda p: self._open_once())

    def _make_buckets(self) -> None:
        self._buckets, self._schedule = make_buckets(self._parameters_used, self._order, self.group, *self._limits)
        self._places = [(0, 0)] * len(self._parameters_used)
        for b, items in enumerate(self._schedule.plan):
            for place, item in enumerate(items):
                self._places[item] = (b, place)

    @property
    def buckets(self) -> list[Bucket]:
        """The buckets, in the order in which they travel."""
        return list(self._buckets)

    # In the order of a step.

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        if self.training and torch.is_grad_enabled() and self._syncs:
            if self._joined is not None:
                self._joined.announce()
            self._prepare()
        return self.module(*args, **kwargs)

    def _prepare(self) -> None:
        if not self._is_reordered and len(self._schedule.arrivals) == len(self._parameters_used):
            self._reorder()
        if self._broadcast_buffers:
            root = 0 if self._joined is None else self._joined.root
            broadcast_tensors(list(self.module.buffers()), self.group, root)

    def _reorder(self) -> None:
        """Fills the buckets anew, in the order in which rank 0 saw gradients in the first step."""
        order = np.array(self._schedule.arrivals, np.int64)
        self.group.run(_BROADCAST, order, order)
        self._is_reordered = True
        if order.tolist() != self._order:
            self._order = order.tolist()
            self._make_buckets()

    def weigh(self, samples: float) -> None:
        """Says how many samples the next backward's loss is the mean of. With it, every sample of every rank counts
        alike, however unequal the batches. All ranks say it, or none; one without samples says 0."""
        self._refuse_normalised_together("weigh", "multiply the loss by samples × ranks ÷ all samples instead")
        if not samples >= 0:
            raise InvalidArgument(f"DataParallel.weigh: a weight of {samples} is less than none")
        total = np.array([samples], np.float64)
        self.group.run(_native.Call("all_reduce"), total, total)
        if total[0] == 0:
            raise InvalidArgument("DataParallel.weigh: no rank has any samples")
        self._factor = samples / float(total[0])

    def _open_once(self) -> None:
        if self._syncs and not self._is_open:
            self._open()
            torch.autograd.Variable._execution_engine.queue_callback(self._close)

    def _ready(self, index: int) -> None:
        if not self._syncs:
            return
        self._open_once()
        bucket, place = self._places[index]
        self._buckets[bucket].take(place, self._factor)
        self._look()
        for started in self._schedule.ready(index):
            self._start(self._buckets[started])

    def _look(self) -> None:
        """Notes which of the buckets on their way have arrived meanwhile; moves the others on."""
        for bucket, _ in self._finishes:
            if bucket.work is not None and bucket.work.test():
                self.timeline.finished(bucket.index)
                bucket.work = None

    def _open(self) -> None:
        self._is_open = True
        self._schedule.begin()
        self._finishes = []
        self.timeline.begin()

    def _start(self, bucket: Bucket) -> None:
        bucket.factor, bucket.work = self._factor, None
        try:
            with torch.no_grad():
                finish = self._hook(bucket)
        except Exception as error:  # the others are in this call, or will be: they should not wait for their deadline
            self.group.abort(f"the hook of bucket {bucket.index} raised {type(error).__name__}: {error}")
            raise
        self._finishes.append((bucket, finish))
        self.timeline.started(bucket.index, bucket.nbytes)

    def _close(self) -> None:
        """After backward: what did not come is 0, and everything is waited for."""
        self._look()
        self.timeline.computed()
        try:
            missing = self._schedule.missing()
            kept = {item: self._parameters_used[item].grad for item in missing}
            for item in missing:
                bucket, place = self._places[item]
                self._buckets[bucket].take(place, self._factor)
                for started in self._schedule.ready(item):
                    self._start(self._buckets[started])
            used = np.ones(len(self._parameters_used), np.uint8)
            used[missing] = 0
            self.group.run(_ANY, used, used)
            for bucket, finish in self._finishes:
                with torch.no_grad():
                    finish()
                self.timeline.finished(bucket.index)
                bucket.work = None
            for item in missing:
                if not used[item]:
                    self._parameters_used[item].grad = kept[item]
            self._sparse.average(self._factor)
        finally:
            self._is_open = False
            self._factor = None
            self._finishes = []
            self.timeline.end()

    # Around steps.

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Within it, gradients only add up on each rank; the first backward after it averages all of them."""
        before, self._syncs = self._syncs, False
        try:
            yield
        finally:
            self._syncs = before

    def join(self) -> "_Join":
        """For ranks that have different numbers of batches: around the loop. A rank that has left the loop takes part
        in the others' steps with nothing, and the mean is over those that still compute. In the end, all have the
        parameters of one that computed last; optimiser states stay as they are on each rank."""
        self._refuse_normalised_together("join", "give every rank the same number of batches")
        return _Join(self)

    def _refuse_normalised_together(self, what: str, instead: str) -> None:
        if self._normalised_together:
            raise Unsupported(
                f"DataParallel.{what}: the module has SyncBatchNorm, through which every rank's loss reaches every other rank's"
                f" gradients; {instead}"
            )

    def synchronize(self, root: int = 0) -> None:
        """Parameters and buffers as this rank of the group has them, on every rank."""
        broadcast_tensors([*self.module.parameters(), *self.module.buffers()], self.group, root)

    def clip_grad_norm_(self, max_norm: float) -> torch.Tensor:
        """Scales all gradients so that their norm together is at most `max_norm`; gives the norm before. Parameters
        that model_parallel has split count with all their parts."""
        from .clipping import clip_grad_norm_

        return clip_grad_norm_(self.module.parameters(), max_norm)

    def shadow(self) -> None:
        """A step of a rank that has nothing to compute: its gradients are 0 and do not count."""
        self._prepare()
        self._factor = 0.0
        parameters = [*self._parameters_used, *self._sparse.parameters]
        gradients = [p.grad for p in parameters]
        for parameter in parameters:
            parameter.grad = None
        self._open()
        self._close()
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient


class _Join:
    """The loop of ranks that end at different times. Each step begins by exchanging which ranks are active."""

    def __init__(self, model: DataParallel):
        self.model = model
        self.root = 0  # the first rank that still computes

    def _active_ranks(self, is_active: bool) -> list[int]:
        group = self.model.group
        flags = np.empty(group.size, np.uint8)
        group.run(_ALL_GATHER, np.array([is_active], np.uint8), flags)
        active = np.flatnonzero(flags).tolist()
        self.root = active[0] if active else self.root
        return active

    def announce(self) -> None:
        active = self._active_ranks(True)
        self.model._factor = 1 / len(active)

    def __enter__(self) -> "_Join":
        self.model._joined = self
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            while kind is None and self._active_ranks(False):
                self.model.shadow()
            if kind is None:
                self.model.synchronize(self.root)
        finally:
            self.model._joined = None
