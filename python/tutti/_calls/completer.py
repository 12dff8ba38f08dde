# completer.py: runs a function when calls have ended, for futures, callbacks and `await`.
# SPDX-License-Identifier: Apache-2.0
"""A call ends on whatever thread notices, where no Python code may run; it only puts a number into a queue
(python/bindings/completions.cpp). The completer's threads read that queue. They take turns at listening, so that a
callback that blocks, or starts calls and waits for them, delays nothing else."""

from __future__ import annotations

import itertools
import logging
import os
import threading
import time
from collections.abc import Callable, Sequence

from .. import _native
from .._process import lifecycle


def run_logged(action: Callable[[], None]) -> None:
    try:
        action()
    except Exception:  # it has no caller that could be told otherwise
        logging.getLogger("tutti").exception("a callback of a call that has ended raised")


class Completer:
    """Calls a function once all parts of a call have ended.

    One thread listens. When a call has ended it makes sure that another one listens before it runs the function;
    afterwards it listens again if no other thread does, or ends.
    """

    _idle_seconds = 5.0  # how long a listener stays when there is nothing to listen for

    def __init__(self) -> None:
        self._renew()
        os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        self._lock = threading.Lock()
        self._ended = _native.Completions()
        self._numbers = itertools.count(1)
        self._left: dict[int, int] = {}  # by number: parts that have not ended
        self._actions: dict[int, Callable[[], None]] = {}
        self._threads: set[threading.Thread] = set()
        self._is_listening = False
        self._stopping = False

    def watch(self, parts: Sequence[_native.Work], action: Callable[[], None]) -> None:
        """Has `action` called on a thread of the completer's once every part has ended, well or not."""
        with self._lock:
            number = next(self._numbers)
            self._left[number] = max(1, len(parts))
            self._actions[number] = action
            self._have_one_listen()
        for part in parts:
            self._ended.watch(part, number)
        if not parts:
            self._ended.push(number)

    def _have_one_listen(self) -> None:
        if self._is_listening:
            return
        self._is_listening = True
        thread = threading.Thread(target=self._serve, name="tutti-completer", daemon=True)
        self._threads.add(thread)
        thread.start()

    def _serve(self) -> None:
        while (action := self._listen()) is not None:
            run_logged(action)  # may take its time
            with self._lock:
                if self._is_listening or self._stopping:
                    break
                self._is_listening = True
        with self._lock:
            self._threads.discard(threading.current_thread())

    def _listen(self) -> Callable[[], None] | None:
        """The next action, with another thread listening if need be; None: no thread needs to listen any more."""
        while True:
            number = self._ended.pop(self._idle_seconds)
            with self._lock:
                action = None if number is None else self._action_of(number)
                if action is None and self._left and not self._stopping:
                    continue
                if action is None and number is not None and not self._stopping:
                    continue  # one part of several
                self._is_listening = False
                if action is not None and self._left:
                    self._have_one_listen()
                return action

    def _action_of(self, number: int) -> Callable[[], None] | None:
        if number not in self._left:
            return None
        self._left[number] -= 1
        if self._left[number]:
            return None
        del self._left[number]
        return self._actions.pop(number)

    def stop(self) -> None:
        """Runs what is due, and ends the threads: an interpreter that goes away must not find them inside the core."""
        with self._lock:
            self._stopping = True
        limit = time.monotonic() + self._idle_seconds
        while time.monotonic() < limit and (threads := self._others()):
            for _ in threads:
                self._ended.push(0)
            for thread in threads:
                thread.join(max(0.0, limit - time.monotonic()))
        with self._lock:
            self._stopping = False

    def _others(self) -> set[threading.Thread]:
        with self._lock:
            return self._threads - {threading.current_thread()}


completer = Completer()
lifecycle.after_finalize(completer.stop)
