# barrier.py: a barrier that names the ranks that do not come, and leaves the group usable.
# SPDX-License-Identifier: Apache-2.0
"""Through the store, not through the group: a call of the group that a rank misses breaks it, and the point of this
barrier is to find that rank. Rank 0 waits for the others' marks and publishes the verdict, which everybody else waits for.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING

import torch.distributed as dist

from ..._errors import Timeout
from .rendezvous import RendezvousStore

if TYPE_CHECKING:
    from .group import ProcessGroup

_PASSED = b"passed"


def monitored_barrier(group: ProcessGroup, place: dist.Store, timeout: timedelta, wait_all_ranks: bool) -> None:
    """`place`: keys of this barrier alone. The texts are those that users of gloo look for."""
    store = RendezvousStore(place)
    limit = time.monotonic() + timeout.total_seconds()
    if group.rank() == 0:
        missing = _wait_for_others(store, group.size(), limit, wait_all_ranks)
        store.set("verdict", _PASSED if not missing else b"missing")
        if missing:
            raise Timeout(_who_is_missing(missing, timeout, wait_all_ranks))
        return
    store.set(str(group.rank()), b"here")
    if store.get("verdict", limit - time.monotonic()) != _PASSED:
        raise Timeout(
            f"Rank {group.rank()} successfully reached monitoredBarrier, but received errors while waiting for "
            f"send/recv from rank 0: it did not pass within {_milliseconds(timeout)} ms; look at what rank 0 says"
        )


def _wait_for_others(store: RendezvousStore, size: int, limit: float, wait_all_ranks: bool) -> list[int]:
    missing = []
    for rank in range(1, size):
        if store.get(str(rank), max(limit - time.monotonic(), 0)) is None:
            missing.append(rank)
            if not wait_all_ranks:
                break
    return missing


def _who_is_missing(missing: list[int], timeout: timedelta, wait_all_ranks: bool) -> str:
    if timeout <= timedelta(0):
        return f"Rank 0 timed out in monitoredBarrier after {_milliseconds(timeout)} ms"
    ranks = ", ".join(map(str, missing))
    who = f"Ranks {ranks}" if wait_all_ranks else f"Rank {ranks}"
    return f"{who} failed to pass monitoredBarrier in {_milliseconds(timeout)} ms"


def _milliseconds(timeout: timedelta) -> int:
    return round(timeout.total_seconds() * 1000)
