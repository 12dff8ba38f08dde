# training.py: gradients averaged over ranks, and optimisers whose state is shared out, for JAX and optax.
# SPDX-License-Identifier: Apache-2.0
"""Data parallelism in JAX is one call more::

    step = tutti.jax.value_and_grad(loss_of)                     # in place of jax.value_and_grad
    loss, gradients = step(params, x, y, weight=len(y))          # means over all ranks' samples

or one word more around an optax optimiser: `average_gradients(optax.adam(1e-3))`. `zero(optax.adam(1e-3))` also shares
out the optimiser's state (ZeRO, stages 1 and 2). All of it works inside jax.jit."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax

from .. import _native
from .._arrays.runs import SharedRuns
from .._errors import InvalidArgument
from .._training.average import average


def custom_vjp(x: Any, forward: Callable[[Any], Any], backward: Callable[[Any], Any]) -> Any:
    """y = forward(x), with backward(gradient of y) for the gradient of x."""

    @jax.custom_vjp
    def function(value: Any) -> Any:
        return forward(value)

    function.defvjp(lambda value: (forward(value), None), lambda _, gradient: (backward(gradient),))
    return function(x)


def value_and_grad(
    fun: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False, *, group: Any = None
) -> Callable:
    """jax.value_and_grad whose value and gradients are means over the ranks.

    The function it gives takes `weight=`, the number of samples that `fun` averaged over on this rank, so that every
    sample counts alike; auxiliary results stay this rank's own."""
    plain = jax.value_and_grad(fun, argnums, has_aux)

    @functools.wraps(fun)
    def averaged(*args: Any, weight: Any = None, **kwargs: Any) -> Any:
        value, gradients = plain(*args, **kwargs)
        loss, aux = value if has_aux else (value, None)
        loss, gradients = average((loss, gradients), weight=weight, group=group)
        return ((loss, aux), gradients) if has_aux else (loss, gradients)

    return averaged


def average_gradients(optimizer: Any, *, group: Any = None) -> Any:
    """An optax optimiser that first averages the gradients over the ranks. `update(…, weight=n)` weighs them."""
    import optax

    inner = optax.with_extra_args_support(optimizer)

    def update(gradients: Any, state: Any, params: Any = None, *, weight: Any = None, **extra: Any) -> tuple[Any, Any]:
        return inner.update(average(gradients, weight=weight, group=group), state, params, **extra)

    return optax.GradientTransformationExtraArgs(inner.init, update)


def _shared(leaves: list, group: Any) -> SharedRuns:
    return SharedRuns("jax", [str(leaf.dtype) for leaf in leaves], [leaf.size for leaf in leaves], group)


def zero(optimizer: Any, *, clip_norm: float | None = None, group: Any = None) -> Any:
    """An element-wise optax optimiser (adam, adamw, sgd, …) with its state shared out among the ranks: ZeRO, stages 1
    and 2::

        optimizer = tutti.jax.zero(optax.adamw(1e-3))
        state = optimizer.init(params)                                  # of this rank's part only
        updates, state = optimizer.update(gradients, state, params)     # gradients of this rank's samples

    Gradients are averaged and shared out in one step (`update(…, weight=n)` weighs them), each rank updates its part,
    and the updates are put together again. clip_norm: gradients are first scaled so that their norm over all ranks'
    parts is at most that. Optimisers that look at whole arrays (optax.clip_by_global_norm, adafactor, lamb) would see
    parts only: each is tried on some numbers, whole and in parts, and refused if that makes a difference.
    """
    import optax

    from ._element_wise import require_element_wise

    require_element_wise(optimizer, "zero")
    inner = optax.with_extra_args_support(optimizer)

    def members() -> Any:
        return _native.world() if group is None else group

    def init(params: Any) -> Any:
        leaves = jax.tree_util.tree_leaves(params)
        return inner.init(_shared(leaves, members()).own(leaves))

    def update(gradients: Any, state: Any, params: Any = None, *, weight: Any = None, **extra: Any) -> tuple[Any, Any]:
        leaves, definition = jax.tree_util.tree_flatten(gradients)
        sharing = _shared(leaves, members())
        runs = sharing.mean(leaves, weight, clip_norm)
        own = None if params is None else sharing.own(_leaves_like(params, definition))
        updates, state = inner.update(runs, state, own, **extra)
        return jax.tree_util.tree_unflatten(definition, sharing.whole(updates, leaves)), state

    return optax.GradientTransformationExtraArgs(init, update)


def _leaves_like(params: Any, expected: Any) -> list:
    leaves, definition = jax.tree_util.tree_flatten(params)
    if definition != expected:
        raise InvalidArgument("zero: the parameters and the gradients are trees of different structure")
    return leaves
