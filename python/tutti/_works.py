# _works.py: several calls under way as one.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ._errors import Error


def _time_left(deadline: float | None) -> float | None:
    """Seconds; never 0, which Work.wait() does not take."""
    return None if deadline is None else max(1e-6, deadline - time.monotonic())


def complete(works: list) -> list:
    """The results of works that a blocking call has started. An exception of a signal's handler leaves that call: then they are given
    up, the last first, so that messages keep their order."""
    try:
        return [work.wait() for work in works]
    except Error:
        raise
    except BaseException:
        for work in reversed(works):
            work.give_up()
        raise


class Works:
    """What the asynchronous verbs give for a tree of arrays: like a Work, over all its messages.

    Dropped, it keeps its arrays alive until the calls have ended, and never blocks.
    """

    def __init__(self, works: list, finish: Callable[[list], Any], verb: str = ""):
        self._works = works
        self._finish = finish
        self._result: Any = None
        self._is_done = False
        self.verb = verb

    def wait(self, timeout: float | None = None) -> Any:
        """Waits until every call has ended and gives the result; raises what went wrong.

        With a timeout (in seconds), tutti.Timeout means "not yet": the calls go on, and wait() may be called again.
        """
        if not self._is_done:
            deadline = None if timeout is None else time.monotonic() + timeout
            self._result = self._finish([work.wait(_time_left(deadline)) for work in self._works])
            self._is_done = True
            self._works = []
        return self._result

    def complete(self) -> Any:
        """The result, for a blocking call."""
        return self._finish(complete(self._works))

    def test(self) -> bool:
        """Whether all of it has ended, well or not. Makes progress."""
        return all([work.test() for work in self._works])

    @property
    def source(self) -> int:
        """After a receive: the rank in the group whose message it was."""
        return self._works[0].source

    def __repr__(self) -> str:
        return f"<tutti.Works {self.verb}, {'done' if self._is_done else f'{len(self._works)} under way'}>"
