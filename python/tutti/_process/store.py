# store.py: the job's key-value store.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import time
from collections.abc import Iterable

from .. import _native
from .._errors import InvalidArgument


def _encoded(value: bytes | str, what: str) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise InvalidArgument(f"store: {what} is a {type(value).__name__}; values are bytes or str, so encode it first")


def _checked(key: str) -> str:
    if isinstance(key, str):
        return key
    raise InvalidArgument(f"store: the key is a {type(key).__name__}; keys are str")


class Store:
    """Small values that any rank of the job sets and any rank reads, at any time and in any thread.

    Values come back as bytes. Every call ends by `timeout` seconds (the world's by default) with `Timeout`. One rank keeps the store, rank
    0 at first, and hands it over when it leaves; if it is lost, calls raise `PeerLost`. Key and value together are at most 56 KiB.
    """

    def __init__(self) -> None:
        self._native = _native.JobStore()

    def set(self, key: str, value: bytes | str, *, timeout: float | None = None) -> None:
        """Sets `key`; when this returns, every rank reads the new value."""
        self._native.set(_checked(key), _encoded(value, "the value"), timeout)

    def get(self, key: str, *, timeout: float | None = None) -> bytes:
        """The value of `key`; waits until somebody has set it."""
        return self._native.get(_checked(key), timeout)

    def try_get(self, key: str, *, timeout: float | None = None) -> bytes | None:
        """The value of `key`, or None if nobody has set it."""
        return self._native.try_get(_checked(key), timeout)

    def wait(self, keys: str | Iterable[str], *, timeout: float | None = None) -> None:
        """Waits until all `keys` are set."""
        deadline = None if timeout is None else time.monotonic() + timeout
        for key in [keys] if isinstance(keys, str) else list(keys):
            left = None if deadline is None else max(deadline - time.monotonic(), 1e-3)
            self._native.wait(_checked(key), left)

    def add(self, key: str, amount: int = 1, *, timeout: float | None = None) -> int:
        """Adds to a counter that starts at 0, and returns the sum. `get` reads a counter as decimal text."""
        return self._native.add(_checked(key), amount, timeout)

    def compare_set(self, key: str, expected: bytes | str | None, desired: bytes | str, *, timeout: float | None = None) -> bytes:
        """Sets `key` to `desired` if its value is `expected` (None: if it is not set). Returns the value afterwards."""
        before = None if expected is None else _encoded(expected, "the expected value")
        return self._native.compare_set(_checked(key), before, _encoded(desired, "the desired value"), timeout)

    def remove(self, key: str, *, timeout: float | None = None) -> bool:
        """Removes `key`; whether it was set."""
        return self._native.remove(_checked(key), timeout)

    def __repr__(self) -> str:
        return "<tutti.Store of this job>"


def store() -> Store:
    """The key-value store of the job. Local: every rank may ask for it, or only those that use it.

    Example::

        store = tutti.store()
        if rank == 0:
            store.set("checkpoint", "epoch-7")
        assert store.get("checkpoint", timeout=30) == b"epoch-7"
    """
    return Store()
