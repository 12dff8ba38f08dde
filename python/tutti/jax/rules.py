# rules.py: how calls differentiate and how they batch.
# SPDX-License-Identifier: Apache-2.0
"""Gradients are those of the sum of all ranks' losses; the table of adjoints is the core's (docs/gradients.md).
Backward is collective too: a call is transposed on every rank that differentiated it, also where nothing depends on its
result."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.interpreters import ad

from .. import _native
from .._errors import Unsupported
from .internals import Zero, batching, cond_p, has_calls, predicate_is_batched, while_p
from .primitive import call_p, run


def _gives_input_back(call: Any, rank: int) -> bool:
    return call.root_gets and rank != call.root


def _adjoint(call: Any, shape: tuple[int, ...], result: tuple[int, ...], group: Any) -> Any:
    """The adjoint on this rank. Off its root a scatter may have been given anything: the root's shape follows from the
    result."""
    if call.verb == "scatter" and group.rank != call.root:
        shape = _scattered_shape(call, result, group.size)
    return call.adjoint(shape, group.rank, group.size)


def _scattered_shape(call: Any, part: tuple[int, ...], size: int) -> tuple[int, ...]:
    if call.axis is None:
        return (size, *part)
    axis = call.axis % len(part)
    return (*part[:axis], sum(call.sizes) if call.sizes else part[axis] * size, *part[axis + 1 :])


def _jvp(
    primals: list, tangents: list, *, call: Any, group: int, shape: tuple[int, ...], timeout: float | None, **_: Any
) -> tuple:
    (x,), (tangent,) = primals, tangents
    member = _native.group_of(group)
    kind = _adjoint(call, x.shape, shape, member).kind  # raises in forward where there is no gradient
    rest = {"timeout": timeout, "differentiated": True}
    if type(tangent) is Zero:
        return run(x, call, group, shape, timeout=timeout), Zero(jax.core.ShapedArray(shape, tangent.aval.dtype))
    if kind == "select":
        return _select_jvp(x, tangent, call, member, shape, rest)
    return run(x, call, group, shape, **rest), run(tangent, call, group, shape, **rest)


def _select_jvp(x: Any, tangent: Any, call: Any, group: Any, shape: tuple[int, ...], rest: dict) -> tuple:
    """min and max: the ranks that hold the value share its tangent. Linear in the tangent, so that it transposes by
    itself."""
    value, everywhere = _selected(x, call, group, shape, rest)
    holds = (x == jax.lax.stop_gradient(everywhere)) | (x != x)  # a NaN is what min and max give then
    holds = jax.lax.stop_gradient(holds.astype(x.dtype))
    count = run(holds, _native.Call("all_reduce"), group.id, x.shape, **rest)
    share = tangent * (holds / jax.lax.stop_gradient(count))
    result = run(share, call.replace(op="sum"), group.id, shape, **rest)
    return value, result + (tangent - share) if _gives_input_back(call, group.rank) else result


def _selected(x: Any, call: Any, group: Any, shape: tuple[int, ...], rest: dict) -> tuple:
    """What the caller gets, and the chosen values of all elements."""
    if call.verb == "reduce":
        everywhere = run(x, _native.Call("all_reduce", op=call.op), group.id, x.shape, **rest)
        return (x if _gives_input_back(call, group.rank) else everywhere), everywhere
    value = run(x, call, group.id, shape, **rest)
    if call.verb == "all_reduce":
        return value, value
    join = _native.Call("all_gather", axis=call.axis, uneven=call.sizes is not None, sizes=call.sizes)
    return value, run(jax.lax.stop_gradient(value), join, group.id, x.shape, **rest)


def _transpose(
    gradient: Any, x: Any, *, call: Any, group: int, shape: tuple[int, ...], timeout: float | None, **_: Any
) -> list:
    member = _native.group_of(group)
    aval = x.aval
    if type(gradient) is Zero:  # the other ranks may have one
        gradient = jnp.zeros(shape, aval.dtype)
    adjoint = _adjoint(call, aval.shape, shape, member)
    result_shape = gradient.shape if _gives_input_back(adjoint.call, member.rank) else aval.shape
    result = run(gradient, adjoint.call, group, result_shape, timeout=timeout, differentiated=True)
    if adjoint.zero:
        return [jnp.zeros(aval.shape, aval.dtype)]
    if adjoint.scale != 1.0:
        result = result * jnp.asarray(adjoint.scale, aval.dtype)
    return [result + gradient if adjoint.adds_own else result]


def _batch(args: list, dims: list, *, call: Any, group: int, shape: tuple[int, ...], **rest: Any) -> tuple:
    """The batch is one more axis of the array: the call's axes move out of its way."""
    (x,), (dim,) = args, dims
    length = x.shape[dim]
    if not call.has_blocks:
        return run(x, call, group, (*shape[:dim], length, *shape[dim:]), **rest), dim
    if call.axis is None and call.splits:
        x = jnp.moveaxis(x, dim, min(1, x.ndim - 1))  # behind the axis that goes
        return run(x, call, group, (length, *shape), **rest), 0
    x = jnp.moveaxis(x, dim, 0)
    if call.axis is None:
        if _gives_input_back(call, _native.group_of(group).rank):
            return run(x, call, group, (length, *shape), **rest), 0
        return run(x, call, group, (shape[0], length, *shape[1:]), **rest), 1
    moved = call.replace(axis=_behind_the_batch(call.axis), concat_axis=_behind_the_batch(call.concat_axis))
    return run(x, moved, group, (length, *shape), **rest), 0


def _behind_the_batch(axis: int) -> int:
    return axis + 1 if axis >= 0 else axis  # counted from the end it stays


def _refuse_batched_cond(rule: Any) -> Any:
    def checked(axis_data: Any, args: list, dims: list, **params: Any) -> Any:
        if dims[0] is not None and has_calls(*params["branches"]):
            raise Unsupported(
                "vmap of cond or switch with a batched predicate runs all branches, and with them the verbs in each; "
                "take the "
                "verb out of the branches, or use jax.lax.map, which decides for one element at a time"
            )
        return rule(axis_data, args, dims, **params)

    return checked


def _refuse_batched_while(rule: Any) -> Any:
    def checked(axis_data: Any, args: list, dims: list, **params: Any) -> Any:
        if has_calls(params["cond_jaxpr"], params["body_jaxpr"]) and predicate_is_batched(axis_data, dims, **params):
            raise Unsupported(
                "vmap of while_loop with a batched predicate runs the body until the last element is done, and with it "
                "its verbs, "
                "as often as this rank's elements need; make the predicate one for the whole batch, or use jax.lax.map"
            )
        return rule(axis_data, args, dims, **params)

    return checked


def register() -> None:
    """Makes the rules known to JAX. Those of cond and while_loop get a check in front: they take calls for pure
    functions."""
    ad.primitive_jvps[call_p] = _jvp
    ad.primitive_transposes[call_p] = _transpose
    batching.primitive_batchers[call_p] = _batch
    batchers = batching.fancy_primitive_batchers
    batchers[cond_p] = _refuse_batched_cond(batchers[cond_p])
    batchers[while_p] = _refuse_batched_while(batchers[while_p])
