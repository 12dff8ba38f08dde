# errors.py: what went wrong inside a compiled program, as Tutti's own exceptions.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import jax

from .. import _native


@contextmanager
def translated() -> Iterator[None]:
    """Raises Tutti's exceptions where JAX would raise its own.

    A call that fails inside a compiled program reaches Python as ``jax.errors.JaxRuntimeError``, with Tutti's message
    in it, where the program's result is first waited for; from a small program, which JAX runs as soon as it is called,
    also as a ``ValueError`` with the same words. In this block it is the exception that the verb would have raised::

        with tutti.jax.translated():
            loss = float(step(params, batch))      # tutti.PeerLost, with .rank and .host
    """
    try:
        yield
    except (jax.errors.JaxRuntimeError, ValueError) as error:
        _native.jax_rethrow(str(error))
        raise
