# ivy.py: the names of ivy.distributed: ``import tutti.compat.ivy as i_dist``.
# SPDX-License-Identifier: Apache-2.0
"""Ivy's arrays go in and come out, as do those of NumPy, PyTorch, JAX, TensorFlow and the array API standard's others; lists,
tuples and dicts of them, too. The framework may change in the middle of a program."""
from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from .._calls import verbs
from .._native import Group
from .._process import lifecycle
from .._process.lifecycle import Context
from .._training.pmap import pmap as native_pmap

__all__ = [
    "Group", "ParallelContext", "all_gather", "all_reduce", "all_to_all", "barrier", "broadcast", "gather", "init_dist", "pmap",
    "recv", "reduce", "reduce_scatter", "scatter", "send",
]
_FRAMEWORKS = ("nccl", "gloo", "torch", "jax", "numpy", "tensorflow")  # what Ivy calls backends: here, the array says it


def init_dist(backend: str = "auto", **options: Any) -> None:
    """Joins the job. `backend` is one of Tutti's; the names of frameworks and of their backends count as "auto"."""
    lifecycle.init(backend="auto" if backend in _FRAMEWORKS else backend, **options)


def ParallelContext() -> Context:
    """What this process knows about its job, as a dict and by attribute: rank, world_size, global_rank, local_rank, … One per
    process."""
    return lifecycle.context()


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """A nest with its leaves changed. Ivy's containers are dicts."""
    if isinstance(value, dict):
        return type(value)((key, _mapped(each, change)) for key, each in value.items())
    if isinstance(value, (list, tuple)):
        return type(value)(_mapped(each, change) for each in value)
    return change(value)


def _arrays_class() -> type:
    """Ivy's class of arrays, if somebody uses Ivy; else one that nothing is an instance of."""
    ivy = sys.modules.get("ivy")
    return ivy.Array if ivy is not None else type("Nothing", (), {})


def _native_of(x: Any) -> tuple[Any, bool]:
    """The arrays that Ivy's wrap, and whether there were any."""
    wraps = _arrays_class()
    found = False

    def change(leaf: Any) -> Any:
        nonlocal found
        found = found or isinstance(leaf, wraps)
        return leaf.data if isinstance(leaf, wraps) else leaf

    return _mapped(x, change), found


def _wrapped(x: Any) -> Any:
    array = sys.modules["ivy"].Array
    return _mapped(x, lambda leaf: leaf if leaf is None or isinstance(leaf, (int, float)) else array(leaf))


def _with_arrays(verb: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(verb)
    def run(x: Any, *args: Any, **options: Any) -> Any:
        native, from_ivy = _native_of(x)
        result = verb(native, *args, **options)
        return _wrapped(result) if from_ivy and result is not None else result

    return run


all_gather = _with_arrays(verbs.all_gather)
all_reduce = _with_arrays(verbs.all_reduce)
all_to_all = _with_arrays(verbs.all_to_all)
broadcast = _with_arrays(verbs.broadcast)
gather = _with_arrays(verbs.gather)
reduce = _with_arrays(verbs.reduce)
reduce_scatter = _with_arrays(verbs.reduce_scatter)
scatter = _with_arrays(verbs.scatter)
barrier = verbs.barrier


def send(x: Any, dst: int, tag: int = 0, *, group: Any = None, timeout: float | None = None) -> None:
    """Sends an array to a rank of the group."""
    verbs.send(_native_of(x)[0], dst, tag, group=group, timeout=timeout)


def recv(x_buffer: Any, src: int | None = None, tag: int | None = 0, *, group: Any = None, timeout: float | None = None) -> Any:
    """The array that a rank of the group sent, of the kind that `x_buffer` has, which stays as it is."""
    native, from_ivy = _native_of(x_buffer)
    result = verbs.recv(src, tag, like=native, group=group, timeout=timeout)
    return _wrapped(result) if from_ivy else result


def pmap(fn: Callable[..., Any], in_axes: Any = 0, out_axes: int | None = 0, group: Any = None) -> Callable[..., Any]:
    """A function that shares its work: each rank applies `fn` to its part along the first axis, and all get all the results."""

    @functools.wraps(fn)
    def mapped(*args: Any, **options: Any) -> Any:
        native, from_ivy = _native_of(args)

        def on_native(*parts: Any, **rest: Any) -> Any:
            return _native_of(fn(*(_wrapped(parts) if from_ivy else parts), **rest))[0]

        result = native_pmap(on_native, in_axes, out_axes, group)(*native, **options)
        return _wrapped(result) if from_ivy else result

    return mapped
