# eager.py: verbs on JAX arrays that exist already: straight to the core, without a program.
# SPDX-License-Identifier: Apache-2.0
"""The input is read where it lies and never written. The result is written once, into memory that JAX then takes over
as it is: that takes an address that is a multiple of 64."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from .. import _native
from .._arrays.flat import new_aligned
from .._calls.works import Works
from .errors import translated

def ready(x: jax.Array) -> np.ndarray:
    """The array as NumPy sees it, once it is computed. On the CPU nothing is copied."""
    with translated():
        return np.asarray(x)


def taken_over(result: np.ndarray, like: jax.Array | None) -> jax.Array:
    """The result as a JAX array, where the input was."""
    return jax.device_put(result, None if like is None else like.sharding)


def run(
    call: Any, x: jax.Array, group: Any, shape: tuple[int, ...], timeout: float | None, differentiated: bool
) -> jax.Array:
    """One call whose result has this shape; blocks."""
    source, result = ready(x), new_aligned(shape, x.dtype)
    if call.root_gives and group.rank != call.root:
        source = None
    with jax.profiler.TraceAnnotation(f"tutti.{call.verb}"):  # next to nothing while nobody traces
        group.run(call, source, result, differentiated=differentiated, timeout=timeout)
    return taken_over(result, x)


def apply(call: Any, x: jax.Array, group: Any, async_op: bool, timeout: float | None) -> Any:
    """A verb of the user's: results whose shape the others know are learned from them, and a Work is given if asked
    for."""
    source = ready(x)
    learns = learns_shape(call, group.rank)
    out = None if learns else new_aligned(call.output_shape(x.shape, group.rank, group.size), x.dtype)
    with jax.profiler.TraceAnnotation(f"tutti.{call.verb}"):
        result = _native.apply(call, source, out, group, async_op, timeout)
    if async_op:
        return Works([result], lambda results: taken_over(results[0], x), call.verb)
    return taken_over(result, x)


def learns_shape(call: Any, rank: int) -> bool:
    """Whether only the others know what comes back: off its root, scatter may be given anything."""
    return call.learns_sizes or (call.verb == "scatter" and rank != call.root)
