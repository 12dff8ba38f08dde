# compression.py: what a bucket of gradients looks like on the wire: as it is, in fewer bits, or as thin matrices.
# SPDX-License-Identifier: Apache-2.0
"""A hook gets a `Bucket` when its gradients are complete, starts whatever has to travel, and gives back a function that
waits for it; after that function, `bucket.tensor` holds the mean over the ranks. Functions are called in the order of
the buckets, once all have been started::

    def in_bfloat16(bucket):
        narrow = bucket.tensor.bfloat16()
        work = tutti.all_reduce(narrow, op="mean", out=narrow, group=bucket.group, async_op=True)
        return lambda: (work.wait(), bucket.tensor.copy_(narrow))

A hook may put its work into `bucket.work`, so that the timeline tells when it had arrived.

`bucket.factor` is a number where the gradients are weighted already, so that "sum" has to be taken: `mean_op(bucket)`
tells. All ranks use the same hook."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from .. import _native
from .._errors import InvalidArgument
from .gpu import flat_array, on_cpu
from .memory import parts_of

Finish = Callable[[], Any]
Hook = Callable[[Any], Finish]


def mean_op(bucket: Any) -> str:
    """The reduction that makes a bucket the mean over the ranks."""
    return "mean" if bucket.factor is None else "sum"


def plain(bucket: Any) -> Finish:
    """As it is, in place."""
    work = bucket.work = bucket.group.start(_native.Call("all_reduce", op=mean_op(bucket)), bucket.array, bucket.array)
    return work.wait


class Cast:
    """In fewer bits: half of the bytes. Each rank's gradients are rounded once, their mean (added in float32) again."""

    def __init__(self, dtype: torch.dtype):
        self.dtype = dtype

    def __call__(self, bucket: Any) -> Finish:
        if bucket.tensor.dtype.itemsize <= self.dtype.itemsize:
            return plain(bucket)
        from ._bucket import shared_memory

        if "narrow" not in bucket.state:
            tensor = bucket.tensor
            bucket.state["narrow"] = shared_memory(tensor.numel(), self.dtype, bucket.group, tensor.device)
        narrow = bucket.state["narrow"]
        narrow.copy_(bucket.tensor)
        array = flat_array(narrow)
        work = bucket.work = bucket.group.start(_native.Call("all_reduce", op=mean_op(bucket)), array, array)

        def finish() -> None:
            work.wait()
            bucket.tensor.copy_(narrow)

        return finish


class Int8:
    """Blocks of 256 numbers as bytes and one scale: a quarter of the bytes. What rounding loses is added to the next
    step's gradients (error feedback), on both ways: to the rank that adds a part up, and from it to all. Gradients on a GPU
    go by way of the host, which rounds them."""

    def __call__(self, bucket: Any) -> Finish:
        if bucket.tensor.dtype != torch.float32:
            return plain(bucket)
        state = bucket.state.get("int8") or bucket.state.setdefault("int8", _Int8State(bucket))
        on_host = on_cpu(bucket.tensor)
        state.pack(on_host)
        work = bucket.group.start(state.exchange, state.outgoing, state.incoming)

        def finish() -> None:
            work.wait()
            state.add_own_part(bucket)
            bucket.group.run(state.collect, state.own_records, state.all_records)
            state.unpack(on_host)
            if on_host is not bucket.tensor:
                bucket.tensor.copy_(on_host)

        return finish


class _Int8State:
    """Memory and residuals of one bucket. The bucket is cut into one part per rank, in whole blocks."""

    def __init__(self, bucket: Any):
        group, count, block = bucket.group, bucket.tensor.numel(), _native.quantised_block
        blocks = _native.shard_sizes(-(-count // block), group.size)
        self.begins = [min(count, sum(blocks[:r]) * block) for r in range(group.size)]
        self.ends = [min(count, begin + n * block) for begin, n in zip(self.begins, blocks, strict=True)]
        sizes = [_native.quantised_bytes(end - begin) for begin, end in zip(self.begins, self.ends, strict=True)]
        own = sizes[group.rank]
        self.exchange = _native.Call("all_to_all", sizes=sizes, recv_sizes=[own] * group.size)
        self.collect = _native.Call("all_gather", uneven=True, sizes=sizes)
        self.outgoing = np.empty(sum(sizes), np.uint8)
        self.incoming = np.empty(own * group.size, np.uint8)
        self.own_records = np.empty(own, np.uint8)
        self.all_records = np.empty(sum(sizes), np.uint8)
        self.rank = group.rank
        self.offsets = [sum(sizes[:r]) for r in range(group.size + 1)]
        self.residual = torch.zeros(count)
        self.own = torch.zeros(self.ends[group.rank] - self.begins[group.rank])
        self.own_residual = torch.zeros_like(self.own)

    def _parts(self) -> range:
        return range(len(self.begins))

    def pack(self, gradients: torch.Tensor) -> None:
        for r in self._parts():
            begin, end = self.begins[r], self.ends[r]
            records = self.outgoing[self.offsets[r] : self.offsets[r + 1]]
            _native.quantise(gradients[begin:end], self.residual[begin:end], records)

    def add_own_part(self, bucket: Any) -> None:
        self.own.zero_()
        for records in self.incoming.reshape(len(self.begins), -1):
            _native.dequantise(records, self.own, add=True)
        if bucket.factor is None:
            self.own.div_(len(self.begins))
        _native.quantise(self.own, self.own_residual, self.own_records)

    def unpack(self, gradients: torch.Tensor) -> None:
        for r in self._parts():
            records = self.all_records[self.offsets[r] : self.offsets[r + 1]]
            _native.dequantise(records, gradients[self.begins[r] : self.ends[r]])


class PowerSgd:
    """Matrices as products of two thin ones (Vogels, Karimireddy, Jaggi 2019), with error feedback; vectors as they
    are.

    rank: the thin matrices' width: a gradient of n × m costs rank · (n + m) numbers instead of n · m. start_step: the
        first steps go uncompressed. Matrices that would not become smaller go as they are."""

    def __init__(self, rank: int = 2, start_step: int = 10, seed: int = 0):
        if rank < 1:
            raise InvalidArgument(f"PowerSgd: a rank of {rank} leaves nothing")
        self.rank, self.start_step, self.seed = rank, start_step, seed

    def __call__(self, bucket: Any) -> Finish:
        step = bucket.state["step"] = bucket.state.get("step", -1) + 1
        if step < self.start_step:
            return plain(bucket)
        matrices = bucket.state.get("matrices")
        if matrices is None:
            matrices = bucket.state["matrices"] = self._matrices(bucket)
        for matrix in matrices:
            matrix.begin()
        others = torch.cat([bucket.views[i].reshape(-1) for i in bucket.state["others"]] or [bucket.tensor[:0]])
        lefts = torch.cat([m.left.reshape(-1) for m in matrices] or [bucket.tensor[:0]])
        call = _native.Call("all_reduce", op=mean_op(bucket))
        works = [bucket.group.start(call, flat_array(x), flat_array(x)) for x in (others, lefts)]

        def finish() -> None:
            for work in works:
                work.wait()
            _split_into([m.left for m in matrices], lefts)
            rights = torch.cat([m.turn().reshape(-1) for m in matrices] or [bucket.tensor[:0]])
            bucket.group.run(call, flat_array(rights), flat_array(rights))
            _split_into([m.right for m in matrices], rights)
            for matrix in matrices:
                matrix.end(1.0 if bucket.factor is None else 1 / bucket.group.size)
            _split_into([bucket.views[i] for i in bucket.state["others"]], others)

        return finish

    def _matrices(self, bucket: Any) -> list["_ThinMatrix"]:
        matrices, others = [], []
        random = torch.Generator().manual_seed(self.seed + bucket.index)  # the same on every rank
        for i, view in enumerate(bucket.views):
            height = view.shape[0] if view.dim() > 1 else 1
            width = view.numel() // max(height, 1)
            if self.rank * (height + width) < height * width:
                matrices.append(_ThinMatrix(view.view(height, width), self.rank, random))
            else:
                others.append(i)
        bucket.state["others"] = others
        return matrices


class _ThinMatrix:
    """One gradient: wanted = gradient + what was lost before ≈ left · rightᵀ."""

    def __init__(self, gradient: torch.Tensor, rank: int, random: torch.Generator):
        self.gradient = gradient
        self.lost = torch.zeros_like(gradient)
        self.wanted = torch.empty_like(gradient)
        self.right = torch.randn(gradient.shape[1], rank, generator=random, dtype=torch.float32).to(gradient)
        self.left = gradient.new_empty(gradient.shape[0], rank)

    def begin(self) -> None:
        torch.add(self.gradient, self.lost, out=self.wanted)
        torch.matmul(self.wanted, self.right, out=self.left)

    def turn(self) -> torch.Tensor:
        self.left.copy_(torch.linalg.qr(self.left)[0])
        return torch.matmul(self.wanted.T, self.left, out=self.right)

    def end(self, share: float) -> None:
        """share: this rank's part in the result, so that the ranks' losses add up to what it lacks."""
        torch.matmul(self.left, self.right.T, out=self.gradient)
        torch.sub(self.wanted, self.gradient, alpha=share, out=self.lost)


def _split_into(targets: list[torch.Tensor], flat: torch.Tensor) -> None:
    for target, part in zip(targets, parts_of(flat, targets), strict=True):
        target.copy_(part)


_NAMED: dict[str, Callable[[], Hook]] = {
    "bf16": lambda: Cast(torch.bfloat16),
    "fp16": lambda: Cast(torch.float16),
    "int8": Int8,
    "powersgd": PowerSgd,
}


def hook_from(hook: str | Hook | None) -> Hook:
    """A hook by its name, or the caller's own."""
    if hook is None:
        return plain
    if callable(hook):
        return hook
    if hook not in _NAMED:
        raise InvalidArgument(f"DataParallel: hook={hook!r} is none of {', '.join(map(repr, _NAMED))}, nor a function")
    return _NAMED[hook]()
