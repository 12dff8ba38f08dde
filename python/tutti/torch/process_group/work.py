# work.py: calls under way as torch.distributed knows them: wait, test, futures.
# SPDX-License-Identifier: Apache-2.0
"""A ``Work`` waits in the caller's thread, which makes progress itself: no hand-over between threads. A future needs
a thread that notices the end: the completer's (_calls/completer.py), on which a callback may start calls and wait for them,
as PowerSGD's do.

An exception of a signal's handler that leaves a wait leaves the call under way: the program can wait for the work again.
Inside torch.distributed's blocking functions nobody has it, so there the call is given up: a message is kept for the
next receive, a collective breaks its group, and the caller's tensors are not touched any more.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from ... import _native
from ..._calls.completer import completer
from ..._errors import Error, Timeout

Result = list[Any]  # tensors, or lists of them


def explained(error: Exception) -> Exception:
    """A deadline that passed, with where to set it."""
    if not isinstance(error, Timeout):
        return error
    advice = "its timeout is that of the process group: init_process_group and new_group take a longer timeout="
    return Timeout(f"{error}; {advice}").with_traceback(error.__traceback__)


def _devices_of(result: Any) -> list[torch.device]:
    """Of the tensors on GPUs, which a future has to know."""
    if isinstance(result, torch.Tensor):
        return [result.device] if result.device.type == "cuda" else []
    if isinstance(result, (list, tuple)):
        return list({device: None for each in result for device in _devices_of(each)})
    return []


class Work(dist.Work):
    """One call of the process group, which may be several of the core's."""

    def __init__(
        self, parts: Sequence[_native.Work], result: Result, settle: Callable[[], Result | None] | None = None
    ) -> None:
        super().__init__()
        self._parts = parts
        self._result = result
        self._settle = settle  # after the last part has ended well: brings results to where they belong
        self._ended = False
        self._error: BaseException | None = None
        self._turn = threading.Lock()  # one thread at a time waits for the parts
        self._future: torch.futures.Future | None = None

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Waits until the call has ended and raises what went wrong. Zero: as long as the call itself may take."""
        if not self._ended:
            try:
                with self._turn:
                    self._finish(timeout.total_seconds() or None)
            except Timeout:
                raise
            except BaseException:  # of a signal's handler
                if sys._getframe(1).f_globals.get("__name__") == dist.distributed_c10d.__name__:
                    self._give_up()
                raise
        if self._error is not None:
            raise self._error
        return True

    def complete(self) -> None:
        """Waits on behalf of a call that blocks."""
        try:
            self.wait()
        except Error:
            raise
        except BaseException:
            self._give_up()
            raise

    def _give_up(self) -> None:
        for part in reversed(self._parts):  # the last first, so that messages keep their order
            part.give_up()

    def synchronize(self) -> None:
        self.wait()

    def _finish(self, seconds: float | None) -> None:
        if self._ended:
            return
        until = None if seconds is None else time.monotonic() + seconds
        for part in self._parts:
            if until is not None and not part.test():
                part.wait(max(until - time.monotonic(), 0.001))  # Timeout means "not yet", and leaves us as we are
            try:
                part.wait()
            except Error as error:
                self._error = self._error or explained(error)
        if self._error is None and self._settle is not None:
            try:
                self._result = self._settle() or self._result
            except Exception as error:
                self._error = error
        self._settle = None
        self._ended = True

    def is_completed(self) -> bool:
        if not self._ended and self._turn.acquire(blocking=False):
            try:
                if all(part.test() for part in self._parts):
                    self._finish(None)
            finally:
                self._turn.release()
        return self._ended

    def is_success(self) -> bool:
        return self.is_completed() and self._error is None

    def exception(self) -> BaseException | None:
        return self._error

    def result(self) -> Result:
        self.wait()
        return self._result

    def source_rank(self) -> int:
        return self._parts[0].source

    _source_rank = source_rank

    def get_future(self) -> torch.futures.Future:
        if self._future is None:
            gate = torch.futures.Future(devices=_devices_of(self._result))
            # An exception raised inside then() is an error of the future for C++ callers too; set_exception() is not.
            self._future = gate.then(self._deliver)
            if self._ended:
                gate.set_result(None)
            else:
                completer.watch(self._parts, lambda: gate.set_result(None))
        return self._future

    def get_future_result(self) -> torch.futures.Future:
        return self.get_future()

    def _deliver(self, _: torch.futures.Future) -> Result:
        self.wait()
        return self._result


class Ended(Work):
    """A call that was over before it returned."""

    def __init__(self, result: Result) -> None:
        super().__init__((), result)
        self._ended = True
