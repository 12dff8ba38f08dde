# torch.py: the names of horovod.torch: ``import tutti.compat.horovod.torch as hvd``.
# SPDX-License-Identifier: Apache-2.0
"""Ranks make the same calls in the same order: names of tensors, by which Horovod pairs calls, are taken and not used. A rank
that makes another call raises tutti.Mismatch. Not there: join, Adasum, sparse_allreduce_async, the elastic API and the timeline."""
from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch

from ..._calls import verbs
from ..._objects import verbs as object_verbs
from ..._process import lifecycle
from ..._errors import Error as HorovodInternalError
from ..._errors import Unsupported
from ..._process.lifecycle import finalize as shutdown
from ..._process.lifecycle import is_initialized, local_rank, rank, size
from ...torch.sync_batch_norm import SyncBatchNorm
from ._optimizer import DistributedOptimizer
from ._reductions import Average, Compression, Max, Min, Product, ReduceOp, Sum, reduction_of
from ._process_sets import ProcessSet, add_process_set, global_process_set, group_of, remove_process_set

__all__ = [
    "Average", "Compression", "DistributedOptimizer", "HorovodInternalError", "Max", "Min", "ProcessSet", "Product", "ReduceOp", "Sum",
    "SyncBatchNorm", "add_process_set", "allgather", "allgather_async", "allgather_object", "allreduce", "allreduce_", "allreduce_async",
    "allreduce_async_", "alltoall", "alltoall_async", "barrier", "broadcast", "broadcast_", "broadcast_async", "broadcast_async_",
    "broadcast_object", "broadcast_optimizer_state", "broadcast_parameters", "cross_rank", "cross_size", "global_process_set",
    "grouped_allgather", "grouped_allgather_async", "grouped_allreduce", "grouped_allreduce_", "grouped_allreduce_async",
    "grouped_allreduce_async_", "grouped_reducescatter", "grouped_reducescatter_async", "init", "is_homogeneous", "is_initialized", "join",
    "local_rank", "local_size", "poll", "rank", "reducescatter", "reducescatter_async", "remove_process_set", "shutdown", "size",
    "start_timeline", "stop_timeline", "synchronize",
]


def init(comm: Any = None, process_sets: Sequence[ProcessSet] | None = None) -> None:
    """Joins the job; again is allowed. `comm`: a communicator of mpi4py."""
    lifecycle.init() if comm is None else lifecycle.init(comm=comm)
    for each in process_sets or ():
        add_process_set(each)


def local_size() -> int:
    return lifecycle.context().local_size


def cross_rank() -> int:
    return lifecycle.context().node_rank


def cross_size() -> int:
    return lifecycle.context().node_count


def is_homogeneous() -> bool:
    """Whether all hosts have as many ranks. Collective."""
    sizes = object_verbs.all_gather_object(local_size())
    return len(set(sizes)) == 1


def _reduced(
    tensor: Any, average: bool | None, op: Any, compression: Any, scales: tuple[float, float], process_set: Any, in_place: bool,
    async_op: bool,
) -> Any:
    """all_reduce of a tensor or a list, or the work of it."""
    op, group = reduction_of(average, op), group_of(process_set)
    tensors = tensor if isinstance(tensor, (list, tuple)) else [tensor]
    whole = op == "mean" and any(not each.is_floating_point() and not each.is_complex() for each in tensors)
    if whole or scales != (1.0, 1.0) or compression is not Compression.none:
        if async_op:
            raise NotImplementedError("horovod: compression, factors and the mean of integers are not there for *_async")
        return _staged(tensor, op, compression, scales, group, in_place)
    if not in_place:
        return verbs.all_reduce(tensor, op=op, group=group, async_op=async_op)
    with torch.no_grad():
        return verbs.all_reduce(tensor, op=op, out=tensor, group=group, async_op=async_op)


def _staged(tensor: Any, op: str, compression: Any, scales: tuple[float, float], group: Any, in_place: bool) -> Any:
    if isinstance(tensor, (list, tuple)):
        return [_staged(each, op, compression, scales, group, in_place) for each in tensor]
    small, context = compression.compress(tensor * scales[0] if scales[0] != 1.0 else tensor)
    if op == "mean" and not small.is_floating_point() and not small.is_complex():
        total = torch.div(verbs.all_reduce(small, group=group), group.size, rounding_mode="trunc")
    else:
        total = verbs.all_reduce(small, op=op, group=group)
    total = compression.decompress(total, context)
    total = total * scales[1] if scales[1] != 1.0 else total
    return _stored(tensor, total) if in_place else total


def _stored(tensor: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        tensor.copy_(values)
    return tensor


def allreduce(
    tensor: torch.Tensor, average: bool | None = None, name: str | None = None, compression: Any = Compression.none, op: Any = None,
    prescale_factor: float = 1.0, postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    """The mean over the ranks (op=Average), or another reduction; with gradients."""
    return _reduced(tensor, average, op, compression, (prescale_factor, postscale_factor), process_set, False, False)


def _allreduce(form: str, doc: str, in_place: bool, async_op: bool) -> Callable[..., Any]:
    """allreduce in another of its forms."""

    def call(
        tensor: torch.Tensor, average: bool | None = None, name: str | None = None, op: Any = None, prescale_factor: float = 1.0,
        postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set,
    ) -> Any:
        scales = (prescale_factor, postscale_factor)
        return _reduced(tensor, average, op, Compression.none, scales, process_set, in_place, async_op)

    call.__name__ = call.__qualname__ = form
    call.__doc__ = doc
    return call


allreduce_ = _allreduce("allreduce_", "The same in place.", True, False)
allreduce_async = _allreduce("allreduce_async", "The same in the background: synchronize(handle) gives the result.", False, True)
allreduce_async_ = _allreduce("allreduce_async_", "The same in the background and in place.", True, True)


def allgather_async(tensor: torch.Tensor, name: str | None = None, process_set: ProcessSet = global_process_set) -> Any:
    rows = tensor.reshape(1) if tensor.dim() == 0 else tensor
    return verbs.all_gather(rows, uneven=True, group=group_of(process_set), async_op=True)


def allgather(tensor: torch.Tensor, name: str | None = None, process_set: ProcessSet = global_process_set) -> torch.Tensor:
    """All ranks' tensors joined along the first axis, of which they may have different lengths; with gradients."""
    rows = tensor.reshape(1) if tensor.dim() == 0 else tensor
    return verbs.all_gather(rows, uneven=True, group=group_of(process_set))


class _Several:
    """The handles of several calls as one."""

    def __init__(self, works: list[Any]) -> None:
        self.works = works

    def test(self) -> bool:
        return all(work.test() for work in self.works)

    def wait(self) -> list[Any]:
        return [work.wait() for work in self.works]


def _grouped(call: Callable[..., Any], run: Callable[[Callable[[Any], Any], list[Any]], Any]) -> Callable[..., Any]:
    """A function of one tensor as that of several, with the same arguments behind the tensors."""

    @functools.wraps(call)
    def grouped(tensors: Sequence[torch.Tensor], *args: Any, **options: Any) -> Any:
        return run(lambda tensor: call(tensor, *args, **options), list(tensors))

    grouped.__name__ = grouped.__qualname__ = f"grouped_{call.__name__}"
    return grouped


def _together(call: Callable[[Any], Any], tensors: list[Any]) -> Any:
    """In few messages."""
    return call(tensors)


def _each(call: Callable[[Any], Any], tensors: list[Any]) -> list[Any]:
    return [call(tensor) for tensor in tensors]


def _start_each(call: Callable[[Any], Any], tensors: list[Any]) -> _Several:
    return _Several(_each(call, tensors))


grouped_allreduce, grouped_allreduce_ = _grouped(allreduce, _together), _grouped(allreduce_, _together)
grouped_allreduce_async, grouped_allreduce_async_ = _grouped(allreduce_async, _together), _grouped(allreduce_async_, _together)
grouped_allgather, grouped_allgather_async = _grouped(allgather, _each), _grouped(allgather_async, _start_each)


def broadcast(
    tensor: torch.Tensor, root_rank: int, name: str | None = None, process_set: ProcessSet = global_process_set
) -> torch.Tensor:
    """The root's tensor, on every rank. The root is a rank of the world, as everywhere in Horovod."""
    return verbs.broadcast(tensor, root=_root(root_rank, process_set), group=group_of(process_set))


def broadcast_(
    tensor: torch.Tensor, root_rank: int, name: str | None = None, process_set: ProcessSet = global_process_set
) -> torch.Tensor:
    """The same in place."""
    return synchronize(broadcast_async_(tensor, root_rank, name, process_set))


def broadcast_async(
    tensor: torch.Tensor, root_rank: int, name: str | None = None, process_set: ProcessSet = global_process_set
) -> Any:
    return verbs.broadcast(tensor, root=_root(root_rank, process_set), group=group_of(process_set), async_op=True)


def broadcast_async_(
    tensor: torch.Tensor, root_rank: int, name: str | None = None, process_set: ProcessSet = global_process_set
) -> Any:
    with torch.no_grad():
        values = tensor.detach()
        return verbs.broadcast(
            values, root=_root(root_rank, process_set), out=values, group=group_of(process_set), async_op=True
        )


def _root(root_rank: int, process_set: Any) -> int:
    return root_rank if process_set is global_process_set else process_set.ranks.index(root_rank)


def alltoall(
    tensor: torch.Tensor, splits: Any = None, name: str | None = None, process_set: ProcessSet = global_process_set
) -> Any:
    """Exchanges parts of the first axis. With `splits`, how many rows go to which rank, also how many came from whom."""
    return _alltoall(tensor, splits, process_set)


def _alltoall(tensor: torch.Tensor, splits: Any, process_set: ProcessSet, async_op: bool = False) -> Any:
    group = group_of(process_set)
    if splits is None:
        return verbs.all_to_all(tensor, group=group, async_op=async_op)
    splits = torch.as_tensor(splits, dtype=torch.int64)
    received = verbs.all_to_all(splits, group=group)
    result = verbs.all_to_all(
        tensor, split_sizes=splits.tolist(), recv_sizes=received.tolist(), group=group, async_op=async_op
    )
    return _WithSizes(result, received) if async_op else (result, received)


class _WithSizes:
    """The handle of an uneven alltoall."""

    def __init__(self, work: Any, received: torch.Tensor) -> None:
        self.test, self.wait = work.test, lambda: (work.wait(), received)


def alltoall_async(
    tensor: torch.Tensor, splits: Any = None, name: str | None = None, process_set: ProcessSet = global_process_set
) -> Any:
    """The same in the background; the numbers of rows are exchanged at once."""
    return _alltoall(tensor, splits, process_set, async_op=True)


def _scattered(tensor: torch.Tensor, op: Any, process_set: ProcessSet, async_op: bool) -> Any:
    group = group_of(process_set)
    rows = tensor.shape[0]
    sizes = [rows // group.size + (each < rows % group.size) for each in range(group.size)]
    return verbs.reduce_scatter(tensor, op=reduction_of(None, op), sizes=sizes, group=group, async_op=async_op)


def reducescatter(
    tensor: torch.Tensor, name: str | None = None, compression: Any = Compression.none, op: Any = None,
    process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
) -> torch.Tensor:
    """This rank's part, along the first axis, of the reduction: the mean unless `op` says otherwise."""
    small, context = compression.compress(tensor * prescale_factor if prescale_factor != 1.0 else tensor)
    part = compression.decompress(_scattered(small, op, process_set, False), context)
    return part * postscale_factor if postscale_factor != 1.0 else part


def reducescatter_async(
    tensor: torch.Tensor, name: str | None = None, op: Any = None, process_set: ProcessSet = global_process_set
) -> Any:
    """The same in the background."""
    return _scattered(tensor, op, process_set, True)


grouped_reducescatter = _grouped(reducescatter, _each)
grouped_reducescatter_async = _grouped(reducescatter_async, _start_each)


def join(device: int = -1) -> int:
    """Not there: every rank makes the same calls."""
    raise Unsupported(
        "horovod: join() is not there; give all ranks as many batches (tutti.batches), or train with tutti.torch.DataParallel, "
        "whose join() is for ranks with fewer"
    )


def start_timeline(file_path: str, mark_cycles: bool = False) -> None:
    """Not there: Tutti's own tools show what a job does."""
    raise Unsupported("horovod: the timeline is not there; print(model.timeline) of tutti.torch.DataParallel shows a step")


def stop_timeline() -> None:
    start_timeline("")


def barrier(process_set: ProcessSet = global_process_set) -> None:
    verbs.barrier(group=group_of(process_set))


def poll(handle: Any) -> bool:
    """Whether what an *_async call started is over."""
    return handle.test()


def synchronize(handle: Any) -> Any:
    """The result of what an *_async call started."""
    return handle.wait()


def broadcast_object(
    obj: Any, root_rank: int = 0, name: str | None = None, process_set: ProcessSet = global_process_set
) -> Any:
    """The root's object, in Tutti's typed encoding: no pickle."""
    return object_verbs.broadcast_object(obj, root=_root(root_rank, process_set), group=group_of(process_set))


def allgather_object(obj: Any, name: str | None = None, process_set: ProcessSet = global_process_set) -> list[Any]:
    """All ranks' objects."""
    return object_verbs.all_gather_object(obj, group=group_of(process_set))


def broadcast_parameters(
    params: Mapping[str, Any] | Iterable[tuple[str, Any]], root_rank: int, process_set: ProcessSet = global_process_set
) -> None:
    """Gives all ranks the root's parameters, in place: model.state_dict() or model.named_parameters()."""
    named = sorted(params.items()) if isinstance(params, Mapping) else list(params)
    tensors = [value.detach() for _, value in named if isinstance(value, torch.Tensor)]
    if tensors:
        verbs.broadcast(tensors, root=_root(root_rank, process_set), out=tensors, group=group_of(process_set))


def broadcast_optimizer_state(
    optimizer: torch.optim.Optimizer, root_rank: int, process_set: ProcessSet = global_process_set
) -> None:
    """Gives all ranks the root's state of an optimizer: its settings and its tensors."""
    optimizer.load_state_dict(broadcast_object(optimizer.state_dict(), root_rank, process_set=process_set))


def _not_built() -> bool:
    return False


mpi_threads_supported = mpi_enabled = mpi_built = gloo_enabled = gloo_built = nccl_built = ddl_built = ccl_built = cuda_built = rocm_built = _not_built
