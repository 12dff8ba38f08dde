# works.py: calls under way: what async_op=True gives, and waiting for several of them.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import abc
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, Generic, TypeVar

from .. import _native
from .._errors import Error, InvalidArgument, Timeout

Result = TypeVar("Result")
Self = TypeVar("Self", bound="Work[Any]")

_LISTEN_S = 0.05  # how long a wait that cannot be interrupted lasts; signals are looked at in between


def _deadline_after(timeout: _native.Timeout) -> float | None:
    if timeout is None:
        return None
    seconds = timeout.total_seconds() if hasattr(timeout, "total_seconds") else float(timeout)
    if not seconds >= 0:
        raise InvalidArgument(f"timeout={timeout} is less than 0 seconds")
    return time.monotonic() + seconds


def _time_left(deadline: float | None) -> float | None:
    return None if deadline is None else max(0.0, deadline - time.monotonic())


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


class Work(abc.ABC, Generic[Result]):
    """A call under way, as ``async_op=True``, ``isend`` and ``irecv`` give it. ::

        work = tutti.all_reduce(x, async_op=True)
        …                                          # compute meanwhile
        y = work.wait()                            # or: y = await work

    A work that is dropped goes on, keeps its arrays alive and never blocks; a receive that no message has reached is cancelled.
    ``with work:`` waits at the end of the
    block. Works of several calls may be waited for together: ``tutti.wait_all``, ``tutti.wait_any``.
    """

    verb: str

    @abc.abstractmethod
    def wait(self, timeout: _native.Timeout = None) -> Result:
        """Waits for the call and gives its result; raises what went wrong.

        timeout: at most so many seconds (0: without waiting). Raises Timeout if the call has not ended by then; it goes
            on, and may be waited for again. Without it, the call's own deadline holds.
        """

    @abc.abstractmethod
    def test(self) -> bool:
        """Whether it has ended, well or not. Makes progress, never blocks."""

    @property
    @abc.abstractmethod
    def source(self) -> int:
        """After a receive: the rank in the group whose message it was."""

    @property
    def tag(self) -> int:
        """After a receive: the tag of the message."""
        raise InvalidArgument(f"{self.verb}: only messages have a tag")

    @property
    def count(self) -> int:
        """After a receive: how many elements came."""
        raise InvalidArgument(f"{self.verb}: only messages have a count")

    def cancel(self) -> bool:
        """Takes a message back: one of send, recv, isend or irecv.

        True: as if it had never been asked for; wait() raises Aborted. False: too late, it goes on. A send that its receiver has heard
        of, and that no receive has found, is given back a little later: wait() tells.

        Raises InvalidArgument for collectives, which one rank cannot take back.
        """
        raise InvalidArgument(
            f"cancel: {self.verb or 'this call'} is under way on several ranks, and one of them cannot take it back;"
            " group.abort(reason) ends it everywhere, with the group"
        )

    def add_done_callback(self: Self, callback: Callable[[Self], object]) -> None:
        """Calls ``callback(work)`` once the call has ended, well or not, on a thread of the library's; at once, on this
        thread, if it has ended already. What the callback raises is logged."""
        from .completer import completer, run_logged

        if self.test():
            run_logged(lambda: callback(self))
            return
        completer.watch(parts_of(self), lambda: callback(self))

    def __await__(self) -> Generator[Any, None, Result]:
        """Inside asyncio: lets other tasks run until the call has ended, and gives its result."""
        import asyncio

        loop = asyncio.get_running_loop()
        ended = loop.create_future()

        def tell(_: Any) -> None:
            try:
                loop.call_soon_threadsafe(lambda: None if ended.done() else ended.set_result(None))
            except RuntimeError:
                pass  # the loop was closed meanwhile: no task waits any more

        self.add_done_callback(tell)
        yield from ended.__await__()
        return self.wait()

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        if kind is None:
            self.wait()


def _unknown(self: Any, name: str) -> Any:
    """For names that are not found only."""
    if name.startswith("_"):  # Python's own questions, which expect no advice
        raise AttributeError(f"'Work' object has no attribute {name!r}")
    from .hints import work_name_hint

    raise AttributeError(f"a tutti.Work has no {name}" + work_name_hint(name, dir(Work)))


setattr(Work, "__getattr__", _unknown)  # noqa: B010  # in the class, type checkers would take every name for one that is there


class Works(Work[Result]):
    """What the asynchronous verbs give for a tree of arrays: a Work over all its messages."""

    def __init__(self, works: list, finish: Callable[[list], Result], verb: str = ""):
        self._works = works
        self._finish = finish
        self._result: Any = None
        self._is_done = False
        self._source = -1
        self._turn = threading.Lock()
        self.verb = verb

    def wait(self, timeout: _native.Timeout = None) -> Result:
        if not self._is_done:
            deadline = _deadline_after(timeout)
            results = [work.wait(_time_left(deadline)) for work in self._works]
            with self._turn:  # a callback may wait for it as well
                if not self._is_done:
                    self._result = self._finish(results)
                    self._source = self.source
                    self._is_done = True
                    self._works = []
        return self._result

    def complete(self) -> Any:
        """The result, for a blocking call."""
        return self._finish(complete(self._works))

    def test(self) -> bool:
        return all([work.test() for work in self._works])

    @property
    def source(self) -> int:
        return self._works[0].source if self._works else self._source

    @property
    def parts(self) -> list:
        """The calls that it waits for."""
        return self._works

    def __repr__(self) -> str:
        if self._is_done or not self._works:
            return f"<tutti.Work {self.verb}, ended>"
        if len(self._works) == 1:
            return repr(self._works[0])
        left = [work for work in self._works if not work.test()]
        state = f"{len(left)} of {len(self._works)} calls under way: {left[0]!r}" if left else "ended"
        return f"<tutti.Work {self.verb} of a tree, {state}>"


# The works of the core have the same methods, and count as Work.
Work.register(_native.Work)
for _name in ("add_done_callback", "__await__", "__getattr__", "__enter__", "__exit__"):
    setattr(_native.Work, _name, vars(Work)[_name])


def parts_of(work: Any) -> list[_native.Work]:
    """The core's works that a work consists of."""
    if isinstance(work, Works):
        return [part for each in work.parts for part in parts_of(each)]
    return [work]


def _checked(works: Iterable[Work[Result]], what: str) -> list[Work[Result]]:
    listed = [works] if isinstance(works, Work) else list(works)
    for work in listed:
        if not isinstance(work, Work):
            raise InvalidArgument(
                f"{what}: {type(work).__qualname__} is no work; pass what verbs give with async_op=True, isend and irecv"
            )
    return listed


def wait_all(works: Iterable[Work[Result]], timeout: _native.Timeout = None) -> list[Result]:
    """Waits for several calls and gives their results, in the order of the works. ::

        works = [tutti.all_reduce(x, async_op=True) for x in gradients]
        means = tutti.wait_all(works)

    works: what verbs gave with ``async_op=True``, ``isend`` and ``irecv``.
    timeout: seconds for all of them together; raises Timeout where one has not ended by then (all go on).

    Raises what went wrong in the first of them that failed, after all have ended.
    """
    listed, deadline = _checked(works, "wait_all"), _deadline_after(timeout)
    results: list[Result] = []
    failure: Exception | None = None
    for work in listed:
        try:
            results.append(work.wait(_time_left(deadline)))
        except Timeout as error:
            if not work.test():
                raise  # not yet
            failure = failure or error
        except Exception as error:
            failure = failure or error
    if failure is not None:
        raise failure
    return results


def wait_any(works: Iterable[Work[Result]], timeout: _native.Timeout = None) -> tuple[int, Result]:
    """Waits until one of several calls has ended; gives its place in `works`, and its result. ::

        works = [tutti.irecv(src=rank) for rank in range(1, tutti.size())]
        while works:
            index, message = tutti.wait_any(works)
            del works[index]

    works: what verbs gave with ``async_op=True``, ``isend`` and ``irecv``; at least one.
    timeout: seconds; raises Timeout where none has ended by then (all go on).

    Raises what went wrong in the one that ended.
    """
    listed, deadline = _checked(works, "wait_any"), _deadline_after(timeout)
    if not listed:
        raise InvalidArgument("wait_any: there are no works to wait for")
    for index in _ended(listed, deadline):
        return index, listed[index].wait()
    raise Timeout(f"wait_any: none of {len(listed)} calls has ended after waiting {timeout} s; they go on: {listed[0]!r}")


def _ended(works: list[Work[Any]], deadline: float | None) -> Iterator[int]:
    """The places of works that have ended, first those that have now; nothing more at the deadline."""
    yield from (index for index, work in enumerate(works) if work.test())
    queue, left = _native.Completions(), [len(parts_of(work)) for work in works]
    for index, work in enumerate(works):
        for part in parts_of(work):
            queue.watch(part, index)
    while deadline is None or time.monotonic() < deadline:
        seconds = _time_left(deadline)
        index = queue.pop(_LISTEN_S if seconds is None else min(_LISTEN_S, seconds))
        if index is not None:
            left[index] -= 1
            if left[index] == 0:
                yield index
