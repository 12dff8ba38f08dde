# jax.py: JAX arrays, those that exist and those that a program will have.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import _native
from .._arrays.dtypes import OUR_NAMES
from .._arrays.flat import parts_of
from .._calls.dispatch import tell_refusal
from .._errors import InvalidArgument, Unsupported
from ..jax import eager, fused, primitive

_native.serve_trees([type(jnp.zeros(()))], allows=fused.may_be_fused, run=fused.run)

overlaps = False  # inside a program its calls come one after the other


def apply(call: Any, x: Any, out: Any, group: Any, async_op: bool, timeout: float | None) -> Any:
    """Runs the call on one array, at once or in the program that is being traced."""
    if out is not None:
        error = InvalidArgument(
            f"{call.verb}: JAX arrays cannot be written, so out= cannot be used with them; use the result"
        )
        tell_refusal(group, call, error)
        raise error
    if not isinstance(x, jax.core.Tracer):
        return eager.apply(call, x, group, async_op, timeout)
    if async_op:
        raise Unsupported(
            f"{call.verb}: async_op=True inside a function that JAX traces (jit, grad, vmap, …): the result exists "
            "only when the "
            "program runs, and XLA overlaps what it can by itself; leave async_op out"
        )
    seconds = timeout.total_seconds() if hasattr(timeout, "total_seconds") else timeout
    shape = call.output_shape(x.shape, group.rank, group.size)
    return primitive.run(x, call, group.id, shape, timeout=seconds)


def pack(leaves: list) -> jax.Array:
    """Arrays of one dtype end to end."""
    return jnp.concatenate([jnp.ravel(leaf) for leaf in leaves])


def unpack(flat: Any, leaves: list) -> list:
    """The parts of `flat`, shaped as the leaves."""
    return parts_of(flat, [leaf.shape for leaf in leaves])


def is_writable(x: Any) -> bool:
    return False


def is_traced(x: Any) -> bool:
    return isinstance(x, jax.core.Tracer)


def dtype_name(x: Any) -> str:
    """Tutti's name of the elements' type."""
    name = np.dtype(x.dtype).name
    return OUR_NAMES.get(name, name)


def shape_of(x: Any) -> tuple[int, ...]:
    return tuple(x.shape)


def from_array(array: _native.Array, like: Any) -> jax.Array:
    """Native memory as a JAX array, without a copy."""
    return eager.taken_over(array.numpy(), like if isinstance(like, jax.Array) else None)


def memory(x: Any, write: bool) -> np.ndarray:
    """What a message is read from."""
    if write:
        raise InvalidArgument(
            "recv: JAX arrays cannot be written, so out= cannot be used with them; use like= and the result"
        )
    refuse_gradients("send", x)
    return eager.ready(x)


def refuse_gradients(verb: str, x: Any) -> None:
    """Messages are sent and received while Python runs, not by programs that are differentiated or compiled."""
    if isinstance(x, jax.core.Tracer):
        raise Unsupported(
            f"{verb} works on arrays that exist, and inside jit, grad or vmap there is only {x}; use sendrecv or permute, "
            "which work "
            f"there, or call {verb} outside"
        )


def empty(shape: tuple[int, ...], dtype: str, group: Any) -> Any:
    raise Unsupported(
        "empty: JAX arrays are written by JAX alone; memory that local peers reach is given as NumPy or torch arrays"
    )
