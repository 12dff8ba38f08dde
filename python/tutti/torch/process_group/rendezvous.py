# rendezvous.py: makes the ranks of torch.distributed a world, through the store that torch gives them.
# SPDX-License-Identifier: Apache-2.0
"""torch gives every backend a c10d store, whatever launched the processes (torchrun, mp.spawn, mpirun, a script) and
however they found each other (env://, tcp://, file://, a store of the user's). The ranks use it for rendezvous; nothing
else has to be agreed on, and no further port is opened.
"""

from __future__ import annotations

import atexit
import multiprocessing.util
import os
import time
from datetime import timedelta

import torch.distributed as dist

from ... import _native
from ..._calls.completer import completer


class RendezvousStore:
    """A c10d store as the core's rendezvous uses it (see bindings/store_bridge.cpp)."""

    def __init__(self, store: dist.Store) -> None:
        self._store = store

    def set(self, key: str, value: bytes) -> None:
        self._store.set(key, value)

    def get(self, key: str, seconds: float) -> bytes | None:
        """Asks again and again, ever more seldom: the store's own wait() cannot be interrupted, and complains."""
        begin = time.monotonic()
        while not self._store.check([key]):
            waited = time.monotonic() - begin
            if waited >= seconds:
                return None
            time.sleep(min(max(waited / 4, 0.001), 0.5, seconds - waited))
        return self._store.get(key)

    def try_get(self, key: str) -> bytes | None:
        return self._store.get(key) if self._store.check([key]) else None

    def add(self, key: str, amount: int) -> int:
        return self._store.add(key, amount)

    def compare_set(self, key: str, expected: bytes | None, desired: bytes) -> bytes:
        return self._store.compare_set(key, expected or b"", desired)

    def remove(self, key: str) -> bool:
        return self._store.delete_key(key)


def _host_of(store: dist.Store) -> str:
    while isinstance(store, dist.PrefixStore):
        store = store.underlying_store
    return store.host if isinstance(store, dist.TCPStore) else ""


_worlds: dict[int, _native.Group] = {}  # by id, those of this process
_owner = 0  # the process that they are of


def join(store: dist.Store, rank: int, size: int, timeout: timedelta) -> _native.Group:
    """The world of the ranks that come to this store.

    A store may outlive a world (torchrun's does): each rank counts its meetings in it, and the number tells one from
    the next.
    """
    meeting = store.add(f"tutti/meetings/{rank}", 1)
    place = dist.PrefixStore(f"tutti/{meeting}", store)
    world = _native.join_through(RendezvousStore(place), rank, size, timeout, _host_of(store))
    _prepare_farewell()
    _worlds[world.id] = world
    return world


def init_world(backend: str, timeout: _native.Timeout) -> _native.Group:
    """The world of tutti.init(), of the ranks of torch.distributed."""
    store = dist.distributed_c10d._get_default_store()
    rank, size = dist.get_rank(), dist.get_world_size()
    meeting = store.add(f"tutti/worlds/{rank}", 1)
    place = dist.PrefixStore(f"tutti/world/{meeting}", store)
    world = _native.init_through(RendezvousStore(place), rank, size, timeout, _host_of(store), backend)
    multiprocessing.util.Finalize(None, _finalize, exitpriority=0)  # a process that multiprocessing forked ends without atexit
    return world


def _finalize() -> None:
    from ..._process import lifecycle

    lifecycle._finalize_at_exit()


def _prepare_farewell() -> None:
    """Once per process, whichever way it ends: one that multiprocessing forked ends without atexit."""
    global _owner, _worlds
    if _owner == os.getpid():
        return
    _owner = os.getpid()
    _worlds = {}
    atexit.register(_leave_all)
    multiprocessing.util.Finalize(None, _leave_all, exitpriority=0)


def leave(world: _native.Group) -> None:
    """Says goodbye: the others will not take the end of this process for a loss."""
    if _owner == os.getpid() and _worlds.pop(world.id, None) is not None:
        _native.leave(world)


def _leave_all() -> None:
    for world in list(_worlds.values()):
        leave(world)
    completer.stop()
