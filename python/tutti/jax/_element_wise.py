# _element_wise.py: whether an optax optimiser steps each element by itself, so that arrays may be cut anywhere: it is tried.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from .._errors import Unsupported

_SIDE = 128  # of the matrix that is tried: from here on adafactor keeps rows and columns instead of elements


def require_element_wise(optimizer: Any, what: str) -> None:
    """Raises Unsupported, with the names of the optimiser's parts, if a matrix in two pieces is stepped otherwise than
    in one: optax has no way to ask."""
    random = np.random.default_rng(0)
    # Elements and gradients of all sizes: a limit on norms has to show.
    shape = (_SIDE, _SIDE)
    params = (random.normal(size=shape) * 10.0 ** random.integers(-2, 2, shape)).astype(np.float32)
    gradients = (random.normal(size=(2, *shape)) * 10.0 ** random.integers(-3, 4, (2, *shape))).astype(np.float32)
    with jax.ensure_compile_time_eval():
        step = jax.jit(lambda params, gradients: _stepped(optimizer, params, gradients))
        try:
            whole = np.asarray(step(params, gradients)).ravel()
            flat, slopes = params.reshape(2, -1), gradients.reshape(2, 2, -1)
            parts = [np.asarray(step(flat[half], slopes[:, half])) for half in (0, 1)]
        except TypeError:  # it wants more than gradients and parameters: only its user can tell
            return
    if not np.allclose(whole, np.concatenate(parts), rtol=1e-4, atol=1e-7):
        names = ", ".join(dict.fromkeys(_names_in(optimizer.update, set()))) or "this optimiser"
        raise Unsupported(
            f"{what}: {names}: a step of an array in parts is another one than that of the whole array, so its state "
            f"cannot be shared out. Use average_gradients, and clip_norm= in place of clip_by_global_norm"
        )


def _stepped(optimizer: Any, params: Any, gradients: Any) -> Any:
    state = optimizer.init(params)
    for gradient in gradients:
        updates, state = optimizer.update(gradient, state, params)
        params = params + updates
    return params


def _names_in(function: Any, seen: set[int]) -> Iterator[str]:
    """What the transformations inside are called: each is a function that made `update`, or is kept by it."""
    if id(function) in seen:
        return
    seen.add(id(function))
    if isinstance(function, (tuple, list)):
        for each in function:
            yield from _names_in(each, seen)
    elif callable(function) and hasattr(function, "__qualname__"):
        kept = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
        inner = [name for each in kept for name in _names_in(each, seen)]
        maker = function.__qualname__.split(".")[0]
        if maker not in ("chain", "with_extra_args_support") and "update" in function.__name__:
            yield maker
        yield from inner
