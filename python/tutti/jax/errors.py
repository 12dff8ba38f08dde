# errors.py: what went wrong inside a compiled program, as Tutti's own exceptions.
# SPDX-License-Identifier: Apache-2.0
"""A call that fails inside a compiled program goes through XLA as a code and a text, and jaxlib makes a
``jax.errors.JaxRuntimeError`` of it wherever the program's result is first waited for. All of them are made by calling
that class: it is told to look whether the text is Tutti's, and to make what it is."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax

from .. import _native
from .._calls.compiled_errors import as_both
from .._errors import Error

_Theirs = jax.errors.JaxRuntimeError


def _ours(text: str) -> Error | None:
    """The error behind a text from XLA, if it is one of Tutti's."""
    try:
        _native.jax_rethrow(text)
    except Error as error:
        return error
    return None


def install() -> None:
    """Errors of Tutti are raised as themselves (and as JaxRuntimeError), also out of compiled programs."""

    def new(cls: type, *args: Any, **options: Any) -> BaseException:
        cause = _ours(str(args[0])) if cls is _Theirs and args else None
        return RuntimeError.__new__(cls, *args) if cause is None else as_both(cause, _Theirs)

    try:
        _Theirs.__new__ = staticmethod(new)
    except TypeError:  # a jaxlib whose classes cannot be changed: translated() does it where it is used
        pass


@contextmanager
def translated() -> Iterator[None]:
    """Raises Tutti's exceptions where JAX would raise its own.

    With the jaxlib that is tested here a call that fails inside a compiled program is a Tutti exception anyway, where the
    program's result is first waited for, and a ``jax.errors.JaxRuntimeError`` too. With one that does not allow that, and
    where JAX runs a small program as soon as it is called and raises a ``ValueError``, it is in this block::

        with tutti.jax.translated():
            loss = float(step(params, batch))      # tutti.PeerLost, with .rank and .host
    """
    try:
        yield
    except (_Theirs, ValueError) as error:
        if not isinstance(error, Error):
            _native.jax_rethrow(str(error))
        raise
