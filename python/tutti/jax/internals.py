# internals.py: everything that is not part of JAX's public interface, in one place.
# SPDX-License-Identifier: Apache-2.0
"""Ordered effects have no public door. JAX threads a token through a program for each of them, across loops, branches
and inner functions, and keeps equations that have one although nobody uses their result: all that a collective needs.
mpi4jax relies on the same interface."""

from __future__ import annotations

from typing import Any

from jax._src import core, dispatch, effects
from jax._src.ad_util import Zero
from jax._src.interpreters import batching
from jax._src.lax.control_flow.conditionals import cond_p
from jax._src.lax.control_flow.loops import while_p
from jax.interpreters import mlir

__all__ = [
    "CALLS",
    "Calls",
    "Zero",
    "batching",
    "cond_p",
    "forget_failure",
    "has_calls",
    "is_tracing",
    "predicate_is_batched",
    "row_major",
    "token_type",
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


def _first_token_for_every_program() -> None:
    """JAX hands the token of one program to the next. A program that failed so fails all later ones, of other groups
    too and on this rank only, and moving the token costs more than the call. It is not needed either: a device runs the
    programs of a thread in the order in which they were started. So each gets the thread's first token, except after a
    change of device.
    """
    original = dispatch.RuntimeTokenSet.get_token_input

    def token_input(self: Any, effect: Any, devices: Any) -> Any:
        latest = self.current_tokens.get(effect)
        if not isinstance(effect, Calls) or len(devices) != 1:
            return original(self, effect, devices)
        if latest is not None and latest._buf.devices() != set(devices):
            return original(self, effect, devices)
        first = self.__dict__.setdefault("tutti_first_tokens", {})  # one set of tokens per thread
        if devices[0] not in first:
            self.current_tokens.pop(effect, None)
            first[devices[0]] = original(self, effect, devices)
        return first[devices[0]]

    dispatch.RuntimeTokenSet.get_token_input = token_input


_first_token_for_every_program()


def forget_failure() -> None:
    """Of the latest program: JAX would tell of it once more when Python ends."""
    dispatch.runtime_tokens.current_tokens.pop(CALLS, None)


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
