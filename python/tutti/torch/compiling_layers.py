# compiling_layers.py: model_parallel and pmap inside torch.compile.
# SPDX-License-Identifier: Apache-2.0
"""Counterparts, as in compiling.py, of the functions that carry model_parallel: each is an autograd function whose forward and
backward are calls of the program. Groups, lengths and how they are cut are constants of the program: a program serves
one length along an axis that is cut or joined. The tracer cannot hand a group from one function that it runs to another:
here `members` is a group's number."""
from __future__ import annotations

from typing import Any

import torch
import torch._dynamo
from torch.fx.experimental.symbolic_shapes import guard_scalar

from .. import _native
from .. import model_parallel as mp
from .._arrays import operations
from .._calls import verbs
from .._calls.dispatch import group_or_world
from .._training import pmap
from .._training.parallel_layers import own_range as _own_range
from .compiling import refuse, trace_errors

_TORCH_OPS = operations.TorchOps()


@torch._dynamo.assume_constant_result
def _number_of(group: Any) -> int:
    with trace_errors():
        return mp.members_of(group).id


@torch._dynamo.assume_constant_result
def _group_number(group: Any) -> int:
    with trace_errors():
        return group_or_world(group).id


@torch._dynamo.assume_constant_result
def _rank(members: int) -> int:
    return _native.group_of(members).rank


@torch._dynamo.assume_constant_result
def _sizes(length: int, members: int) -> tuple[int, ...]:
    return tuple(_native.shard_sizes(length, _native.group_of(members).size))


@torch._dynamo.assume_constant_result
def _range(length: int, total: int | None, members: int, what: str) -> tuple[int, int]:
    with trace_errors():
        return _own_range(length, total, _native.group_of(members), what)


def _length(x: torch.Tensor, axis: int) -> int:
    return guard_scalar(x.shape[axis])


def _axis_of(x: torch.Tensor, dim: int, what: str) -> int:
    if not -x.dim() <= dim < x.dim():
        refuse("invalid", f"model_parallel.{what}: dim={dim} is none of the {x.dim()} axes of the tensor")
    return dim % x.dim()


def _own(x: torch.Tensor, axis: int, members: int) -> torch.Tensor:
    sizes, rank = _sizes(_length(x, axis), members), _rank(members)
    return x.narrow(axis, sum(sizes[:rank]), sizes[rank]).clone()


def _joined(x: torch.Tensor, axis: int, sizes: tuple[int, ...] | None, members: int) -> torch.Tensor:
    if sizes is None or sizes[0] == sizes[-1]:
        return verbs.all_gather(x, axis=axis, group=members)
    return verbs.all_gather(x, axis=axis, uneven=True, sizes=sizes, group=members)


class _Copy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, members: int) -> torch.Tensor:
        ctx.members = members
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        return verbs.all_reduce(gradient.contiguous(), group=ctx.members), None


class _Reduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, members: int) -> torch.Tensor:
        return verbs.all_reduce(x, group=members)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        return gradient.clone(), None


class _Scatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, axis: int, members: int) -> torch.Tensor:
        ctx.axis, ctx.members, ctx.sizes = axis, members, _sizes(_length(x, axis), members)
        return _own(x, axis, members)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        return _joined(gradient.contiguous(), ctx.axis, ctx.sizes, ctx.members), None, None


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, axis: int, sizes: Any, members: int) -> torch.Tensor:
        ctx.axis, ctx.members = axis, members
        return _joined(x, axis, sizes, members)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:
        return _own(gradient, ctx.axis, ctx.members), None, None, None


def members_of(group):
    return group if isinstance(group, int) else _number_of(group)


def own_range(length, total, members, what):
    return _range(guard_scalar(length), total, members, what)


def copy(x, *, group=None):
    return _Copy.apply(x, members_of(group))


def reduce(x, *, out=None, group=None):
    if out is not None:
        refuse("unsupported", "model_parallel.reduce: out= cannot be compiled; use what the call gives back")
    return _Reduce.apply(x, members_of(group))


def scatter(x, dim=-1, *, group=None):
    if dim is None:
        return x
    return _Scatter.apply(x, _axis_of(x, dim, "scatter"), members_of(group))


def gather(x, dim=-1, *, total=None, group=None):
    if dim is None:
        return x
    members, axis = members_of(group), _axis_of(x, dim, "gather")
    sizes = None
    if total is not None:
        sizes, own = _sizes(guard_scalar(total), members), _length(x, axis)
        due = sizes[_rank(members)]
        if due != own:
            refuse("invalid", f"model_parallel.gather: total={total} gives this rank {due}, but it has {own}")
    return _Gather.apply(x, axis, sizes, members)


def array_ops_of(x, what):
    return _TORCH_OPS


def _cut(value: Any, axis: int, name: str, members: int, cuts: list) -> Any:
    """The same for trees as in eager code; `cuts` learns how the first tensor was cut."""
    if isinstance(value, dict):
        return {key: _cut(part, axis, f"{name}[{key!r}]", members, cuts) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        parts = [_cut(part, axis, f"{name}[{i}]", members, cuts) for i, part in enumerate(value)]
        if isinstance(value, list):
            return parts
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if not isinstance(value, torch.Tensor):
        return value
    if not -value.dim() <= axis < value.dim():
        refuse("invalid", f"pmap: {name} has {value.dim()} axes, so it cannot be split along axis {axis}; say so by in_axes")
    length = _length(value, axis)
    if not cuts:
        cuts.append(_sizes(length, members))
    elif sum(cuts[0]) != length:
        refuse("invalid", f"pmap: {name} has length {length} along axis {axis}, but another argument has {sum(cuts[0])}")
    rank = _rank(members)
    return value.narrow(axis, sum(cuts[0][:rank]), cuts[0][rank])


def _joined_results(result: Any, axis: int | None, cuts: list, members: int) -> Any:
    if isinstance(result, dict):
        return {key: _joined_results(part, axis, cuts, members) for key, part in result.items()}
    if isinstance(result, (list, tuple)):
        parts = [_joined_results(part, axis, cuts, members) for part in result]
        if isinstance(result, list):
            return parts
        return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)
    if result is None:
        return None
    if axis is None or result.dim() == 0:
        return verbs.all_gather(result, axis=None, group=members)
    return _joined(result, axis, cuts[0] if cuts else None, members)


def share_work(fn, axes, named_axes, out_axes, group, args, kwargs):
    members = _group_number(group)
    cuts: list = []
    parts = []
    for i, (x, axis) in enumerate(zip(args, axes)):
        parts.append(x if axis is None else _cut(x, axis, f"argument {i}", members, cuts))
    named = {}
    for name, x in kwargs.items():
        axis = named_axes.get(name)
        named[name] = x if axis is None else _cut(x, axis, name, members, cuts)
    return _joined_results(fn(*parts, **named), out_axes, cuts, members)


def register() -> None:
    """Tells the tracer; after compiling.py has told it of the verbs."""
    for ours, counterpart in ((mp._copy, copy), (mp._reduce, reduce), (mp._scatter, scatter), (mp._gather, gather)):
        torch.compiler.substitute_in_graph(ours, skip_signature_check=True)(counterpart)
    torch.compiler.substitute_in_graph(mp.members_of)(members_of)
    torch.compiler.substitute_in_graph(_own_range)(own_range)
    torch.compiler.substitute_in_graph(operations.array_ops_of)(array_ops_of)
    torch.compiler.substitute_in_graph(pmap.share_work)(share_work)
    for constant in (mp.rank, mp.world_size, mp.group_size, mp.is_initialized):
        torch._dynamo.assume_constant_result(constant)
