# _failures.py: errors of calls inside tf.function, found again behind what TensorFlow makes of them.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import collections
import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from .._calls.compiled_errors import as_both
from .._errors import Error, Unsupported

Error.ag_pass_through = True  # AutoGraph would replace errors that it does not know, while tracing, by one of its own

# What went wrong last in functions of graphs. A few, since several threads may run such functions.
_remembered: collections.deque[Exception] = collections.deque(maxlen=16)
_lock = threading.Lock()


def remember(error: Exception) -> None:
    """Keeps an error that TensorFlow is about to turn into text."""
    with _lock:
        _remembered.append(error)


def cause_of(error: BaseException) -> Error | None:
    """The tutti error that made a tf.function fail; None if something else did.

    What comes out of a graph is a tutti error and a tf.errors.OpError::

        try:
            step(batch)
        except tf.errors.OpError as error:
            lost = tutti.tensorflow.cause_of(error)     # for example tutti.PeerLost, with .rank and .host
    """
    if isinstance(error, Error):
        return error
    if not isinstance(error, tf.errors.OpError):
        return None
    return _cause_in(error.message)


def _cause_in(message: str) -> Error | None:
    with _lock:
        for known in reversed(_remembered):
            if isinstance(known, Error) and f"{type(known).__name__}: {known}" in message:
                return known
    return None


def install() -> None:
    """Errors of Tutti come out of tf.functions as themselves, and as the tf.errors.OpError that TensorFlow would raise.

    TensorFlow makes its exceptions, in C++ and in Python, by calling their class with a text: the class is told to look
    whether the text is Tutti's."""

    def new(cls: type, *args: Any, **options: Any) -> BaseException:
        plain = Exception.__new__(cls, *args)
        cause = _cause_in(str(args[2] if len(args) > 2 else options.get("message", "")))
        if cause is None or isinstance(plain, Error):
            return plain
        plain.__init__(*args, **options)
        return as_both(cause, cls, vars(plain))

    tf.errors.OpError.__new__ = staticmethod(new)


@contextlib.contextmanager
def own_errors() -> Iterator[None]:
    """Inside, errors of Tutti come out of tf.functions, Keras' fit and the like as what they are: tutti.Timeout, …"""
    try:
        yield
    except tf.errors.OpError as error:
        cause = cause_of(error)
        if cause is None or cause is error:
            raise
        raise cause from error


def function(fn: Callable | None = None, **options: Any) -> Any:
    """tf.function, whose errors of Tutti are raised as themselves. Takes what tf.function does, but jit_compile=True.

    Example::

        @tutti.tensorflow.function
        def step(x):
            return tutti.all_reduce(x)
    """
    if options.get("jit_compile"):
        raise Unsupported(
            "tutti.tensorflow.function: tutti's verbs do not run inside XLA programs; leave jit_compile=True away"
        )
    if fn is None:
        return functools.partial(function, **options)
    return _Function(tf.function(fn, **options))


class _Function:
    """A tf.function behind own_errors; everything else is its own."""

    def __init__(self, inner: Any):
        self._inner = inner
        functools.update_wrapper(self, inner.python_function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with own_errors():
            return self._inner(*args, **kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else _Function(self._inner.__get__(instance, owner))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
