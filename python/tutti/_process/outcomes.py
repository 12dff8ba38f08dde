# outcomes.py: what ranks return or raise, on its way to the process that started them.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import contextlib
import dataclasses
import os
import pickle
import signal
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .._errors import Aborted, Error, PeerLost, RendezvousError, Timeout
from . import lifecycle


class RankTraceback(Exception):
    """The traceback of a rank, as the cause of the error that is raised in its place."""

    def __init__(self, text: str):
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f"\n{self.text}"


@dataclasses.dataclass
class RankResult:
    """What one rank returned or raised, and what it printed."""

    rank: int
    host: str
    value: Any = None
    error: BaseException | None = None
    log: str = ""
    died: bool = False  # its process is gone: the error is what the caller knows of that

    @property
    def is_consequence(self) -> bool:
        """Whether its error only says that somebody else failed."""
        return not self.died and isinstance(self.error, (PeerLost, Aborted, Timeout, RendezvousError))


def values(results: Sequence[RankResult]) -> list[Any]:
    """What the ranks returned, by rank; or raises the error that came first, not those that followed from it."""
    failed = [result for result in results if result.error is not None]
    if failed:
        cause = next((result for result in failed if not result.is_consequence), failed[0])
        assert cause.error is not None
        if cause.log:
            cause.error.add_note(f"what rank {cause.rank} printed last:\n" + "\n".join(cause.log.splitlines()[-20:]))
        raise cause.error
    return [result.value for result in sorted(results, key=lambda result: result.rank)]


def portable(error: BaseException) -> BaseException:
    """The error as it can travel to another process."""
    try:
        copy = pickle.loads(pickle.dumps(error))
        if type(copy) is type(error):
            return error
    except Exception:
        pass
    return Error(f"{type(error).__name__}: {error}")


def ending(status: int | None) -> str:
    """How a process has ended, in words."""
    if status is not None and status < 0:
        return f"was killed by signal {-status}, {signal.Signals(-status).name}"
    return f"ended with status {status}"


def leave() -> None:
    """Says goodbye, so that ranks that return early are not taken for lost."""
    if lifecycle.is_initialized():
        lifecycle.finalize()


@contextlib.contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Within it, the process and those that it starts have these variables and no others."""
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
