# _operation.py: the one differentiable operation, "run this call on x", eagerly and inside tf.function.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from .. import _native
from .._calls.dispatch import with_sizes
from . import _order
from ._eager import run_now
from ._graph import backward_comes, going_back, refuse_graph, run_in_graph, ticket_office, whether_differentiated


def operate(
    call: Any, x: tf.Tensor, group: Any, timeout: float | None = None, *, part: bool = False, tells: bool = False
) -> tf.Tensor:
    """The call on one tensor; gradients flow through it.

    part:  x, off the root of a scatter, stands for what arrives: the result has its shape.
    tells: in eager code, broadcast and scatter take shape and dtype from the root.
    """
    is_eager = tf.executing_eagerly()
    if not is_eager:
        refuse_graph(call.verb)
    watched = _order.is_watched(x)
    if watched:
        if is_eager and call.learns_sizes:
            call = with_sizes(call, x, group)
        call.adjoint(None, group.rank, group.size)  # what has no gradient is refused before anything is sent

    differentiated = watched if is_eager else whether_differentiated(watched)

    def run(x: tf.Tensor) -> tf.Tensor:
        if is_eager:
            return run_now(call, x, group, timeout, part=part, tells=tells, differentiated=differentiated)
        return run_in_graph(call, x, group, timeout, part=part, differentiated=differentiated)

    if not (x.dtype.is_floating or x.dtype.is_complex) or (is_eager and not _order.anything_is_recorded()):
        return run(x)
    # In a graph nobody knows yet whether a tape will watch when it runs.
    return _recorded(call, x, run, group, timeout, takes_part=watched or not is_eager, told=differentiated)


def _recorded(
    call: Any, x: tf.Tensor, run: Callable, group: Any, timeout: float | None, *, takes_part: bool, told: Any
) -> tf.Tensor:
    shape = x.shape if x.shape.is_fully_defined() else tf.shape(x)  # not x itself, which need not be kept for this

    office = ticket_office()

    @tf.custom_gradient
    def recorded(x: tf.Tensor, place: tf.Tensor) -> Any:
        y, passed_on = run(x), place + place
        compared = (x, y) if call.op.name in ("min", "max") else None

        def backward(dy: Any, later: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            if not isinstance(told, bool):
                backward_comes(told)
                later += passed_on  # zero; but a loop is made anew only if backward wants what it computed
            dy = tf.convert_to_tensor(dy)  # gradients of tf.gather are tf.IndexedSlices
            with going_back(office):
                return _pull_back(call, dy, shape, compared, group, timeout), later

        return (y, passed_on), backward

    with _order.next_place(takes_part=takes_part) as place:
        y, place.passed_on = recorded(x, place.given)
    return y


def _pull_back(call: Any, dy: tf.Tensor, shape: Any, compared: Any, group: Any, timeout: float | None) -> tf.Tensor:
    """The gradient of a call's input from that of its result. Collective, as the call was."""
    adjoint = call.adjoint(None, group.rank, group.size)
    if adjoint.kind == "select":
        return _pull_back_selected(call, dy, compared, group, timeout)
    # Off the root of a gather the result was the input: its gradient is shaped as the part that the root sends back.
    part = call.verb == "gather" and group.rank != call.root
    dx = operate(adjoint.call, dy, group, timeout, part=part)
    if adjoint.scale != 1.0:
        dx = dx * tf.cast(adjoint.scale, dx.dtype)
    if adjoint.adds_own:
        dx = dx + dy
    return tie(tf.zeros(shape, dx.dtype), dx) if adjoint.zero else dx


def _pull_back_selected(call: Any, dy: tf.Tensor, compared: Any, group: Any, timeout: float | None) -> tf.Tensor:
    """min and max: the gradient goes to the ranks that hold the value; those that hold the same share it."""
    x, y = (tf.stop_gradient(tensor) for tensor in compared)
    summed = call.replace(op="sum").adjoint(None, group.rank, group.size)
    if call.verb != "all_reduce":  # there every rank has all of it
        y = operate(summed.call, y, group, timeout)
    holds = tf.cast(tf.equal(x, y) | (_is_nan(x) & _is_nan(y)), tf.float32)
    holders = operate(_native.Call("all_reduce"), holds, group, timeout)
    share = tf.cast(tf.math.divide_no_nan(holds, holders), dy.dtype)
    dx = operate(summed.call, dy, group, timeout) * share
    return dx + dy if summed.adds_own else dx


def _is_nan(x: tf.Tensor) -> tf.Tensor:
    return tf.not_equal(x, x)


@tf.custom_gradient
def tie(value: tf.Tensor, *results: tf.Tensor) -> Any:
    """`value`, for whose gradient the results count as used: theirs is zero."""

    def backward(dvalue: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return (dvalue, *(tf.zeros_like(result) for result in results))

    with tf.control_dependencies(results):  # in a graph they would not be computed otherwise
        return tf.identity(value), backward
