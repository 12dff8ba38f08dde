# _bucket.py: gradients that travel together, in memory that local peers reach without a copy, or on a GPU.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .. import _native
from .._errors import Unsupported
from .gpu import flat_array
from .memory import dtype_name, parts_of, refusal

BYTES_MAX = 25 << 20
FIRST_BYTES_MAX = 1 << 20
_ALIGNMENT = 64  # bytes; a cache line


def shared_memory(count: int, dtype: torch.dtype, group: Any, device: torch.device) -> torch.Tensor:
    """A tensor of `count` elements: on the CPU in memory of the group; what is on a GPU local peers reach anyway."""
    if device.type != "cpu":
        return torch.empty(count, dtype=dtype, device=device)
    memory = group.memory(max(count, 1) * dtype.itemsize)
    return torch.from_dlpack(_native.Array(memory.pointer, dtype_name(dtype), (count,), None, False, memory))


def check_devices(parameters: Sequence[torch.Tensor], what: str) -> None:
    """Raises where they are not all in memory that is served, and on one device."""
    for parameter in parameters:
        if (error := refusal(parameter, what)) is not None:
            raise error
        if parameter.device != parameters[0].device:
            raise Unsupported(
                f"{what}: parameters are on {parameters[0].device} and on {parameter.device}; put the model on one device: model.to(…)"
            )


class Bucket:
    """Some parameters and one flat tensor for their gradients.

    tensor: the gradients end to end, this rank's own until a hook has reduced them.
    parameters, views: the parameters, and each one's part of `tensor` in its shape.
    factor: what this rank's gradients were multiplied by so that their sum over the ranks is the mean; None where they
        were not, and the mean is to be taken.
    state: a dict of the hook's own, kept from step to step.
    work: what is on its way, if the hook says so: the timeline then knows when it had arrived.
    """

    def __init__(self, index: int, parameters: Sequence[torch.nn.Parameter], group: Any):
        self.index = index
        self.parameters = list(parameters)
        self.group = group
        self.factor: float | None = None
        self.state: dict[Any, Any] = {}
        self.work: Any = None
        dtype = self.parameters[0].dtype
        per_line = _ALIGNMENT // dtype.itemsize
        counts = [-(-p.numel() // per_line) * per_line for p in self.parameters]
        self.tensor = shared_memory(sum(counts), dtype, group, self.parameters[0].device)
        self.tensor.zero_()  # the gaps are reduced, too
        begins = [sum(counts[:i]) for i in range(len(counts))]
        self.views = [
            self.tensor[begin : begin + p.numel()].view(p.shape) for begin, p in zip(begins, self.parameters, strict=True)
        ]

    @property
    def array(self) -> Any:
        """`tensor` as the next call takes it."""
        return flat_array(self.tensor)

    @property
    def nbytes(self) -> int:
        return self.tensor.numel() * self.tensor.element_size()

    def take(self, place: int, factor: float | None) -> None:
        """The gradient of one parameter into the bucket; from then on it is there."""
        parameter, view = self.parameters[place], self.views[place]
        gradient = parameter.grad
        if gradient is None:
            view.zero_()
        elif gradient.is_sparse:
            raise Unsupported(
                "DataParallel: a parameter that is not an embedding's with sparse=True got a sparse gradient; make it dense by a hook:"
                " parameter.register_hook(lambda gradient: gradient.to_dense())"
            )
        elif factor is not None:
            torch.mul(gradient, factor, out=view)
        elif gradient.data_ptr() != view.data_ptr():
            view.copy_(gradient)
        parameter.grad = view


def make_buckets(
    parameters: Sequence[torch.nn.Parameter], order: Sequence[int], group: Any, bytes_max: int, first_bytes_max: int
) -> tuple[list[Bucket], Any]:
    """Buckets for parameters that become ready in this order, and their schedule."""
    items = [(p.numel() * p.element_size(), dtype_name(p.dtype)) for p in parameters]
    plan = _native.plan_buckets(items, list(order), bytes_max, first_bytes_max)
    buckets = [Bucket(i, [parameters[place] for place in places], group) for i, places in enumerate(plan)]
    return buckets, _native.BucketSchedule(plan)


@torch.no_grad()
def broadcast_tensors(tensors: Sequence[torch.Tensor], group: Any, root: int = 0) -> None:
    """The root's values into everybody's tensors, one message per dtype and device."""
    by_kind: dict[tuple[torch.dtype, torch.device], list[torch.Tensor]] = {}
    for tensor in tensors:
        if tensor.numel():
            by_kind.setdefault((tensor.dtype, tensor.device), []).append(tensor.detach())
    if group.size == 1:
        return
    call = _native.Call("broadcast", root=root)
    for alike in by_kind.values():
        flat = torch.cat([tensor.reshape(-1) for tensor in alike])
        array = flat_array(flat)
        group.run(call, array, array)
        if group.rank != root:
            for tensor, part in zip(alike, parts_of(flat, alike), strict=True):
                tensor.copy_(part)
