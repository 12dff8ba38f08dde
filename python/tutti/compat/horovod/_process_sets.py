# _process_sets.py: Horovod's process sets: groups by their ranks in the world.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import _native
from ..._errors import InvalidArgument
from ..._process import lifecycle


class ProcessSet:
    """Some ranks. It can be used once add_process_set() or init(process_sets=…) has been called with it."""

    def __init__(self, ranks: Sequence[int] | None = None) -> None:
        self._ranks = None if ranks is None else sorted(ranks)
        self._group: Any = None

    @property
    def ranks(self) -> list[int]:
        return list(range(lifecycle.size())) if self._ranks is None else self._ranks

    @property
    def group(self) -> _native.Group:
        if self._ranks is None:
            return lifecycle.world()
        if self._group is None:
            raise InvalidArgument(f"horovod: {self} is not in use yet; call add_process_set() on every rank")
        return self._group

    def size(self) -> int:
        return len(self.ranks)

    def rank(self) -> int:
        return self.group.rank

    def included(self) -> bool:
        return lifecycle.rank() in self.ranks

    def __repr__(self) -> str:
        return f"ProcessSet({self._ranks})"


global_process_set = ProcessSet()


def add_process_set(process_set: ProcessSet | Sequence[int]) -> ProcessSet:
    """Makes the group of a set."""
    made = process_set if isinstance(process_set, ProcessSet) else ProcessSet(process_set)
    if made._ranks is not None and made._group is None:
        made._group = _native.Group(made._ranks)
    return made


def remove_process_set(process_set: ProcessSet) -> bool:
    """Forgets the group of a set; whether there was one."""
    had, process_set._group = process_set._group is not None, None
    return had


def group_of(process_set: ProcessSet) -> _native.Group:
    return process_set.group
