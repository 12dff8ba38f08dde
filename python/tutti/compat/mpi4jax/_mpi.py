# _mpi.py: as much of mpi4py's MPI as programs for mpi4jax use; and groups and reductions from mpi4py's own objects.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

from ... import _native
from ..._calls import verbs
from ..._errors import InvalidArgument
from ..._messages.messages import nobody
from ..._process import lifecycle

# By the names that MPI has for them.
_OPS = {"SUM": "sum", "PROD": "product", "MAX": "max", "MIN": "min", "BAND": "band", "BOR": "bor", "BXOR": "bxor"}


class Comm:
    """A communicator: a group, by mpi4py's names."""

    def __init__(self, group: Any = None) -> None:
        self._group = group

    @property
    def group(self) -> _native.Group:
        """The group of Tutti; the world's communicator joins the job when it is first used."""
        if self._group is None:
            self._group = lifecycle.world() if lifecycle.is_initialized() else lifecycle.init()
        return self._group

    @property
    def rank(self) -> int:
        return self.group.rank

    @property
    def size(self) -> int:
        return self.group.size

    def Get_rank(self) -> int:
        return self.group.rank

    def Get_size(self) -> int:
        return self.group.size

    def Split(self, color: int = 0, key: int = 0) -> "Comm":
        return Comm(self.group.split(color, key))

    def Dup(self) -> "Comm":
        return Comm(self.group.subgroup(range(self.group.size)))

    Clone = Dup

    def Barrier(self) -> None:
        verbs.barrier(group=self.group)

    barrier = Barrier

    def Abort(self, errorcode: int = 0) -> None:
        self.group.abort(f"Abort({errorcode})")


class Status:
    """What is known of a message that was received."""

    def __init__(self) -> None:
        self.source, self.tag, self.bytes = -1, -1, 0

    def Get_source(self) -> int:
        return self.source

    def Get_tag(self) -> int:
        return self.tag

    def Get_error(self) -> int:
        return 0

    def Get_elements_bytes(self) -> int:
        return self.bytes


def note_status(status: Any, source: int, tag: int, size: int) -> None:
    """Into a status of ours, or of mpi4py; None: nobody asked."""
    if isinstance(status, Status):
        status.source, status.tag, status.bytes = source, tag, size
    elif status is not None:
        status.Set_source(source)
        status.Set_tag(tag)


MPI = SimpleNamespace(COMM_WORLD=Comm(), Comm=Comm, Status=Status, ANY_SOURCE=-1, ANY_TAG=-1, PROC_NULL=-2, **_OPS)
_of_mpi4py: dict[int, _native.Group] = {}  # by MPI's number of the communicator


def _is_mpi4py(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "mpi4py"


def group_of(comm: Any) -> _native.Group:
    """The group behind a communicator: ours, mpi4py's, a tutti.Group, or None for all ranks."""
    if comm is None:
        return MPI.COMM_WORLD.group
    if isinstance(comm, Comm):
        return comm.group
    if isinstance(comm, _native.Group):
        return comm
    if not _is_mpi4py(comm):
        raise InvalidArgument(f"mpi4jax: comm is a {type(comm).__name__}, which is no communicator")
    mpi = sys.modules["mpi4py.MPI"]
    if not lifecycle.is_initialized():
        lifecycle.init(comm=mpi.COMM_WORLD)
    handle = comm.py2f()
    if handle not in _of_mpi4py:
        ranks = comm.Get_group().Translate_ranks(group=mpi.COMM_WORLD.Get_group())
        _of_mpi4py[handle] = lifecycle.world().subgroup(ranks)
    return _of_mpi4py[handle]


def op_of(op: Any) -> str:
    """The name that Tutti has for a reduction."""
    if op in _OPS.values():
        return op
    if _is_mpi4py(op):
        mpi = sys.modules["mpi4py.MPI"]
        for theirs, ours in _OPS.items():
            if op == getattr(mpi, theirs):
                return ours
    raise InvalidArgument(f"mpi4jax: op={op!r} is none of MPI's {', '.join(_OPS)}")


def rank_of(rank: int) -> int:
    """A destination: MPI's number for nobody is negative, and not the same in all libraries."""
    return nobody if rank < 0 else rank
