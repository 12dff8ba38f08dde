# fused.py: trees of JAX arrays that exist already: packed, sent and unpacked by one program.
# SPDX-License-Identifier: Apache-2.0
"""Making a JAX array takes JAX tens of microseconds, and a program with many results not much longer than one with a
few. So the arrays of a tree go through a program, which is compiled once per structure. It runs while its caller waits,
on the caller's own group: ranks need not agree on who packs by program."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp

from .._arrays.flat import parts_of
from . import primitive
from .errors import translated
from .internals import is_tracing


@functools.cache
def _is_all_in_one_place() -> bool:
    return jax.default_backend() == "cpu" and jax.local_device_count() == 1


def may_be_fused(leaves: list[jax.Array]) -> bool:
    """Whether the arrays are where one program of the CPU finds them all, and none is being traced that would take it
    in."""
    if is_tracing():
        return False
    if _is_all_in_one_place():
        return True
    devices = leaves[0].sharding.device_set
    return (
        len(devices) == 1
        and next(iter(devices)).platform == "cpu"
        and all(leaf.sharding.device_set == devices for leaf in leaves)
    )


@functools.lru_cache(maxsize=256)
def _program(call: Any, messages: tuple[tuple[int, ...], ...], group: int, timeout: float | None) -> Any:
    def run_all(leaves: list) -> list:
        results: list[Any] = [None] * len(leaves)
        for places in messages:
            parts = [leaves[place] for place in places]
            for place, result in zip(places, _run_fused_message(parts), strict=True):
                results[place] = result
        return results

    def _run_fused_message(parts: list) -> list:
        packed = parts[0] if len(parts) == 1 else jnp.concatenate([jnp.ravel(part) for part in parts])
        result = primitive.run(packed, call, group, packed.shape, timeout=timeout, awaited=True)
        if len(parts) == 1:
            return [result]
        return parts_of(result, [part.shape for part in parts])

    return jax.jit(run_all)


def run(
    call: Any, leaves: list[jax.Array], messages: tuple[tuple[int, ...], ...], group: Any, timeout: float | None
) -> list[jax.Array]:
    """The results for the leaves, which travel as the messages say."""
    with translated():
        return jax.block_until_ready(_program(call, messages, group.id, timeout)(leaves))
