# internals.py: everything that is not part of JAX's public interface, in one place.
# SPDX-License-Identifier: Apache-2.0
"""Ordered effects have no public door. JAX threads a token through a program for each of them, across loops, branches and
inner functions, keeps equations that have one although nobody uses their result, and hands the token of one program to the
next: all that a collective needs. mpi4jax relies on the same interface."""
from __future__ import annotations

from typing import Any

from jax._src import core, effects
from jax._src.ad_util import Zero
from jax._src.interpreters import batching
from jax._src.lax.control_flow.conditionals import cond_p
from jax._src.lax.control_flow.loops import while_p
from jax.interpreters import mlir

__all__ = ["Calls", "Zero", "batching", "cond_p", "has_calls", "is_tracing", "predicate_is_batched", "row_major", "token_type", "while_p"]


class Calls(effects.Effect):
    """A program makes calls on this group: the effect that keeps them in order. Groups are independent of each other."""

    __slots__ = ("group",)

    def __init__(self, group: int) -> None:
        self.group = group

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Calls) and other.group == self.group

    def __hash__(self) -> int:
        return hash((Calls, self.group))

    def __repr__(self) -> str:
        return f"Calls(group {self.group})"


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


def has_calls(*jaxprs: Any) -> bool:
    """Whether any of these makes a call."""
    return any(isinstance(effect, Calls) for jaxpr in jaxprs for effect in jaxpr.effects)


def row_major(ndim: int) -> list[int]:
    """XLA's way to say it: the last axis first."""
    return list(range(ndim - 1, -1, -1))


def token_type() -> Any:
    return mlir.token_type()


def predicate_is_batched(axis_data: Any, dims: list, cond_nconsts: int, cond_jaxpr: Any, body_nconsts: int, body_jaxpr: Any) -> bool:
    """Whether vmap makes a while loop's predicate differ between the elements of a batch: a carry that is batched after some
    round is batched from the start, and so are those computed from it."""
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
