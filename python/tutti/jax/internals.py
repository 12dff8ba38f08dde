# internals.py: everything that is not part of JAX's public interface, in one place.
# SPDX-License-Identifier: Apache-2.0
"""Ordered effects have no public API. JAX threads a token through a program for each of them, across loops, branches
and inner functions, and keeps equations that have one although nobody uses their result: all that a collective needs.
mpi4jax relies on the same interface."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from jax._src import core, dispatch, effects
from jax._src.ad_util import Zero
from jax._src.interpreters import batching
from jax._src.interpreters import mlir as mlir_internals
from jax._src.lax.control_flow.conditionals import cond_p
from jax._src.lax.control_flow.loops import while_p
from jax.interpreters import mlir

__all__ = [
    "CALLS",
    "Calls",
    "Zero",
    "batching",
    "cond_p",
    "has_calls",
    "is_tracing",
    "predicate_is_batched",
    "row_major",
    "token_type",
    "wait_for_calls_too",
    "while_p",
]


class Calls(effects.Effect):
    """A program makes calls: the effect that keeps them in order, those of all groups in one. With an order for each
    group, calls of two groups would still wait for each other, because XLA lets one use memory that the other has done
    with; which for which can differ from rank to rank, and then nobody goes on."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Calls)

    def __hash__(self) -> int:
        return hash("tutti")

    def __repr__(self) -> str:
        return "tutti"


CALLS = Calls()

for allowed in (
    effects.ordered_effects,
    effects.lowerable_effects,
    effects.control_flow_allowed_effects,
    effects.custom_derivatives_allowed_effects,
    effects.remat_allowed_effects,
    getattr(effects, "partial_eval_kept_effects", None),  # since 0.10
):
    if allowed is not None:
        allowed.add_type(Calls)


def is_tracing() -> bool:
    """Whether a program is being traced right now."""
    return not core.trace_state_clean()


def _tokens_made_inside() -> None:
    """JAX hands the token of one program to the next, by Python, and a program that takes one has to be started by
    Python: 80 µs instead of 5. It is not needed: a device runs the programs of a thread in the order in which they were
    started. So the main function of a program makes its token itself, and JAX starts the program as one without
    effects. A program that failed then does not fail later ones either, those of other groups for instance.
    """
    to_module, subcomp = mlir_internals.lower_jaxpr_to_module, mlir_internals.jaxpr_subcomp

    @functools.wraps(to_module)
    def lower_to_module(*arguments: Any, ordered_effects: list, **rest: Any) -> Any:
        # The list is the caller's, who takes from it what the program expects when it is started.
        ordered_effects[:] = [effect for effect in ordered_effects if not isinstance(effect, Calls)]
        return to_module(*arguments, ordered_effects=ordered_effects, **rest)

    @functools.wraps(subcomp)
    def lower_equations(context: Any, jaxpr: Any, names: Any, tokens: Any, *arguments: Any, **rest: Any) -> Any:
        if has_calls(jaxpr) and CALLS not in tokens.effects():  # the main function; all others are given one
            tokens = mlir.TokenSet({**dict(tokens.items()), CALLS: mlir_internals.create_token()})
        return subcomp(context, jaxpr, names, tokens, *arguments, **rest)

    mlir_internals.lower_jaxpr_to_module = lower_to_module
    mlir_internals.jaxpr_subcomp = lower_equations


_tokens_made_inside()


def wait_for_calls_too(wait_for_calls: Callable[[], None]) -> None:
    """jax.effects_barrier(), and JAX at the end of Python, wait for what has effects."""
    original = dispatch.RuntimeTokenSet.block_until_ready

    @functools.wraps(original)
    def block_until_ready(self: Any) -> None:
        original(self)
        wait_for_calls()

    dispatch.RuntimeTokenSet.block_until_ready = block_until_ready


def has_calls(*jaxprs: Any) -> bool:
    """Whether any of these makes a call."""
    return any(isinstance(effect, Calls) for jaxpr in jaxprs for effect in jaxpr.effects)


def row_major(ndim: int) -> list[int]:
    """XLA's way to say it: the last axis first."""
    return list(range(ndim - 1, -1, -1))


def token_type() -> Any:
    return mlir.token_type()


def predicate_is_batched(
    axis_data: Any, dims: list, cond_nconsts: int, cond_jaxpr: Any, body_nconsts: int, body_jaxpr: Any
) -> bool:
    """Whether vmap makes a while loop's predicate differ between the elements of a batch: a carry that is batched after
    some round is batched from the start, and so are those computed from it."""
    batched = [dim is not None for dim in dims]
    cond_consts, body_consts = batched[:cond_nconsts], batched[cond_nconsts : cond_nconsts + body_nconsts]
    carry = batched[cond_nconsts + body_nconsts :]
    for _ in range(len(carry) + 1):
        _, after = batching.batch_jaxpr(body_jaxpr, axis_data, body_consts + carry, carry)
        if list(after) == carry:
            break
        carry = [before or now for before, now in zip(carry, after, strict=True)]
    _, (predicate,) = batching.batch_jaxpr(cond_jaxpr, axis_data, cond_consts + carry, False)
    return bool(predicate)
