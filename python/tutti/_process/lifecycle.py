# lifecycle.py: joining a job, this process's place in it, and leaving it.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import atexit
import sys
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from .. import _native
from .._errors import InvalidArgument
from . import ranges as _ranges
from . import watch as _watch

Value = TypeVar("Value")

_before_finalize: list[Callable[[], None]] = []
_after_finalize: list[Callable[[], None]] = []
_context: Context | None = None
_joined_with: dict[str, Any] = {}  # the arguments of the init() that joined the job


def init(
    backend: str = "auto",
    init_method: str | None = None,
    rank: int | None = None,
    size: int | None = None,
    timeout: _native.Timeout = None,
    comm: Any = None,
    **unknown: object,
) -> _native.Group:
    """Joins the job this process was started in and gives its world: the group of all ranks.

    What is left out comes from the launcher: tuttirun, torchrun, mpirun, srun, or RANK and WORLD_SIZE set by
    hand; then from torch.distributed, if that was initialized. Alone, the world has one rank and every verb still works. ``init_method`` is "env://", "tcp://host:port" or
    "file:///path". ``timeout`` (seconds or a timedelta, 300 s if not given) is for meeting, and the deadline of every call
    that has none of its own. ``comm`` is a communicator of mpi4py: its ranks are the job's, and they meet on it, whatever
    started them; with ``backend="mpi"`` collectives go through MPI, too.

    Example::

        world = tutti.init()
        total = world.all_reduce(np.ones(4))

    A second call gives the same world; it may repeat the arguments of the first, and raises InvalidArgument for others.
    Raises RendezvousError where the ranks do not find each other.
    """
    global _context, _joined_with
    if unknown:
        raise InvalidArgument(_unknown_argument(next(iter(unknown))))
    given = {"backend": backend, "init_method": init_method, "rank": rank, "size": size, "timeout": timeout, "comm": comm}
    if _native.has_world():
        if _context is not None:  # or a handler raised just when the job was joined
            _check_repeated(given)
    elif "logging" in sys.modules:  # a program that has not imported it has not set it up
        from . import log

        log.connect()
    says_who = any(value is not None for value in (init_method, rank, size, comm))
    if not says_who and _follows_torch():
        from ..torch.process_group.rendezvous import init_world

        world = init_world(backend, timeout)
    else:
        world = _native.init(backend, init_method, rank, size, timeout, None if comm is None else _handle_of(comm))
    if _context is None:
        _context, _joined_with = Context(world), given
        _watch.start_answering()
        _ranges.watch_nvtx()
    return world


def _follows_torch() -> bool:
    """Whether torch.distributed was told by hand which rank this is, and nothing in the environment tells Tutti: alone, each of
    its processes would take itself for the whole job."""
    dist = sys.modules.get("torch.distributed")
    if dist is None or _native.has_world() or not dist.is_available() or not dist.is_initialized():
        return False
    return dist.get_world_size() > 1 and _native.launched_size() == 1


def _handle_of(comm: Any) -> int:
    """A communicator of mpi4py as MPI's number for it."""
    if not hasattr(comm, "py2f"):
        raise InvalidArgument(
            f"init: comm is a {type(comm).__name__}, not a communicator of mpi4py; give MPI.COMM_WORLD or another one"
        )
    if not comm:
        raise InvalidArgument("init: comm is MPI.COMM_NULL; only the ranks of a communicator can join on it")
    return int(comm.py2f())


def _check_repeated(given: dict[str, Any]) -> None:
    """Arguments of a second init() that ask for something else than the first got: it would not be done."""
    facts = {"rank": _native.world().rank, "size": _native.world().size, "backend": _native.world().backend}
    for name, value in given.items():
        is_left_out = value is None or (name == "backend" and value == "auto") or value == ""
        if is_left_out or value in (_joined_with.get(name), facts.get(name)):
            continue
        now = facts.get(name, _joined_with.get(name))
        raise InvalidArgument(
            f"init: this process has joined its job already, with {name}={now!r}, and {name}={value!r} would change that; "
            "call tutti.init() without it, or tutti.finalize() first"
        )


def _unknown_argument(name: str) -> str:
    from .._calls.hints import init_hint

    known = ("backend", "init_method", "rank", "size", "timeout", "comm")
    return f"init has no argument {name}=" + init_hint(name, known)


def finalize() -> None:
    """Leaves the job: says goodbye to the others. Calls on any group raise from now on. Runs by itself when Python ends."""
    global _context
    for callback in reversed(_before_finalize):
        callback()
    _context = None
    try:
        _native.finalize()
    finally:
        for callback in _after_finalize:
            callback()


def before_finalize(callback: Callable[[], None]) -> None:
    """Has something done before this process leaves the job, such as waiting for compiled programs that still call."""
    _before_finalize.append(callback)


def after_finalize(callback: Callable[[], None]) -> None:
    """Has something done once every call of this process has ended."""
    _after_finalize.append(callback)


def is_initialized() -> bool:
    """Whether this process has joined a job and not left it."""
    return _native.has_world()


def world() -> _native.Group:
    """The group of all ranks; raises InvalidArgument before init and after finalize."""
    return _native.world()


def rank() -> int:
    """This process's rank in the world: 0 to size() - 1. Raises InvalidArgument before init()."""
    return _native.world().rank


def size() -> int:
    """The number of ranks in the world. Raises InvalidArgument before init()."""
    return _native.world().size


def local_rank() -> int:
    """This process's rank among those of its host, which is what one chooses a device by. Raises InvalidArgument before
    init()."""
    return context().local_rank


class Context(Mapping[str, "int | str"]):
    """Where this process stands in its job: like a dict, and by attribute; to look at, not to change."""

    if TYPE_CHECKING:
        rank: int
        size: int
        world_size: int
        global_rank: int
        local_rank: int
        local_size: int
        node_rank: int
        node_count: int
        root_rank: int
        host: str
        backend: str
        _facts: Mapping[str, int | str]

    def __init__(self, group: _native.Group) -> None:
        place = _native.place()
        place.pop("met")
        place.update(world_size=place["size"], global_rank=place["rank"], backend=group.backend)
        object.__setattr__(self, "_facts", MappingProxyType(place))

    def __getitem__(self, name: str) -> int | str:
        return self._facts[name]

    if not TYPE_CHECKING:  # with it, checkers would take any name for one

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

    rank: int
    size: int
    local_rank: int
    local_size: int
    node_rank: int
    node_count: int
    root_rank: int
    host: str

    def __init__(self) -> None:
        place = _native.place()
        self.met: str = place.pop("met")  # which launcher was recognised, and where the ranks met
        self.__dict__.update(place)

    def barrier(self) -> None:
        """Waits until every rank is here."""
        from .._calls.verbs import barrier

        barrier()

    def broadcast(self, value: Value, root: int = 0) -> Value:
        """The root's value (anything that broadcast_object takes) on every rank."""
        from .._objects.verbs import broadcast_object

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
        import traceback

        traceback.print_exc()
        _native.fail_at_exit()


atexit.register(_finalize_at_exit)
