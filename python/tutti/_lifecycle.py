# _lifecycle.py: joining a job, this process's place in it, and leaving it.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import atexit
import traceback
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from . import _native
from ._errors import InvalidArgument

_before_finalize: list[Callable[[], None]] = []
_context: Context | None = None


def init(
    backend: str = "auto",
    init_method: str | None = None,
    rank: int | None = None,
    size: int | None = None,
    timeout: float | None = None,
    **unknown: Any,
) -> _native.Group:
    """Joins the job this process was started in and gives its world: the group of all ranks.

    What is left out comes from the launcher: tuttirun, torchrun, mpirun, srun, or RANK and WORLD_SIZE set by
    hand; alone, the world has one rank and every verb still works. ``init_method`` is "env://", "tcp://host:port" or
    "file:///path". ``timeout`` (seconds or a timedelta, 300 s if not given) is for meeting, and the deadline of every call
    that has none of its own.

    >>> world = tutti.init()
    >>> world.all_reduce(x)

    A second call gives the same world. Raises RendezvousError where the ranks do not find each other.
    """
    global _context
    if unknown:
        raise InvalidArgument(_unknown_argument(next(iter(unknown))))
    world = _native.init(backend, init_method, rank, size, timeout)
    if _context is None:
        _context = Context(world)
    return world


def _unknown_argument(name: str) -> str:
    from ._hints import init_hint

    known = ("backend", "init_method", "rank", "size", "timeout")
    return f"init has no argument {name}=" + init_hint(name, known)


def finalize() -> None:
    """Leaves the job: says goodbye to the others. Calls on any group raise from now on. Runs by itself when Python ends."""
    global _context
    for callback in reversed(_before_finalize):
        callback()
    _context = None
    _native.finalize()


def before_finalize(callback: Callable[[], None]) -> None:
    """Has something done before this process leaves the job, such as waiting for compiled programs that still call."""
    _before_finalize.append(callback)


def is_initialized() -> bool:
    """Whether this process has joined a job and not left it."""
    return _native.has_world()


def world() -> _native.Group:
    """The group of all ranks; raises InvalidArgument before init and after finalize."""
    return _native.world()


class Context(Mapping):
    """Where this process stands in its job: like a dict, and by attribute; to look at, not to change."""

    def __init__(self, group: _native.Group) -> None:
        place = _native.place()
        place.pop("met")
        place.update(world_size=place["size"], global_rank=place["rank"], backend=group.backend)
        object.__setattr__(self, "_facts", MappingProxyType(place))

    def __getitem__(self, name: str) -> Any:
        return self._facts[name]

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_facts"][name]
        except KeyError:
            raise AttributeError(f"the context has no {name}; it has {', '.join(self.__dict__['_facts'])}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"the context is read-only, so {name} cannot be set: it says where this process was started")

    def __delattr__(self, name: str) -> None:
        self.__setattr__(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._facts)

    def __len__(self) -> int:
        return len(self._facts)

    def __repr__(self) -> str:
        return "Context(" + ", ".join(f"{name}={value!r}" for name, value in self._facts.items()) + ")"


def context() -> Context:
    """One per process: rank, size (= world_size), global_rank, local_rank, local_size, node_rank, node_count, root_rank,
    host, backend. Raises InvalidArgument before init."""
    if _context is None or not is_initialized():
        raise InvalidArgument("this process has not joined a job: call tutti.init() first")
    return _context


class Connector:
    """What launchers and scripts ask first: who am I, how many are we, wait for all, tell all."""

    def __init__(self) -> None:
        place = _native.place()
        self.met: str = place.pop("met")  # which launcher was recognised, and where the ranks met
        self.__dict__.update(place)

    def barrier(self) -> None:
        """Waits until every rank is here."""
        from ._verbs import barrier

        barrier()

    def broadcast(self, value: Any, root: int = 0) -> Any:
        """The root's value (anything that broadcast_object takes) on every rank."""
        from ._objects import broadcast_object

        return broadcast_object(value, root=root)

    def __repr__(self) -> str:
        return f"Connector(rank {self.rank} of {self.size}, {self.met})"


def connector() -> Connector:
    """Who am I, and who else: rank, size, local_rank, …, barrier() and broadcast(value). Joins the job if need be."""
    init()
    return Connector()


def _finalize_at_exit() -> None:
    """There is no caller left to raise to: an error is printed, and the process fails."""
    try:
        finalize()
    except Exception:
        traceback.print_exc()
        _native.fail_at_exit()


atexit.register(_finalize_at_exit)
