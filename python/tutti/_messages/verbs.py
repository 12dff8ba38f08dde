# verbs.py: the verbs of messages: send, recv, isend, irecv, probe, iprobe; and barrier, which moves no array either.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _native
from .._calls.dispatch import reject_keywords
from . import messages

if TYPE_CHECKING:
    from .._calls.type_names import T
    from .._calls.works import Work
    from .._native import Group, Timeout
    from .messages import Message


def send(x: object, dst: int, tag: int = 0, *, group: Group | None = None, async_op: bool = False, timeout: Timeout = None) -> None:
    """Sends x to another rank. Returns when x may be changed again.

    x: an array, a tree of arrays, or an object that send_object takes: a number, a text, a dict of these and so on.
    dst: the rank in the group; tutti.nobody: nothing is sent.
    tag: a number that the message carries; a receive with the same one takes it.

    Raises InvalidArgument where there is no rank `dst`. A send that times out is taken back, and the group goes on.

    Example::

        if rank == 0:
            for other in range(1, size):
                tutti.send(np.arange(3), dst=other, tag=7)
        else:
            assert tutti.recv(0, tag=7).tolist() == [0, 1, 2]
    """
    return (messages.isend if async_op else _native.send)(x, dst, tag, group, timeout)


def recv(src: int | None = None, tag: int | None = 0, *, like: T | None = None, out: T | None = None, group: Group | None = None,
         async_op: bool = False, timeout: Timeout = None) -> T:
    """What another rank sends: an array, a tree of arrays or an object, as it was sent.

    src: the rank in the group; None: any; tutti.nobody: nothing comes, and the result is None.
    tag: the number that the message carries; None: any.
    like: an array of the kind to get (NumPy's, torch's, …), or a tree of them.
    out: an array to fill, or a tree of them, of the dtype that was sent. There may be more room than the message needs.

    Raises Mismatch where out has too little room or another dtype, and Timeout where nothing comes: that breaks this message,
    and the group goes on. irecv and probe tell who sent it.

    Example::

        if rank > 0:
            tutti.send(np.full(2 + rank, rank), dst=0)
        else:
            received = [tutti.recv(other) for other in range(1, size)]
            assert [len(x) for x in received] == [2 + other for other in range(1, size)]
    """
    return (messages.irecv if async_op else _native.recv)(src, tag, like, out, group, timeout)


def isend(x: object, dst: int, tag: int = 0, *, group: Group | None = None, timeout: Timeout = None, **others) -> Work[None]:
    """send that gives a Work at once; x must not be changed before its wait() returns.

    x, dst, tag: as in send. Raises InvalidArgument where there is no rank `dst`. Its cancel() takes the message back.

    Example::

        works = [tutti.isend(np.array([rank]), dst=other) for other in range(size) if other != rank]
        for other in range(size):
            if other != rank:
                assert tutti.recv(other)[0] == other
        tutti.wait_all(works)
    """
    if others:
        reject_keywords(isend, group, others)
    return messages.isend(x, dst, tag, group, timeout)


def irecv(src: int | None = None, tag: int | None = 0, *, like: T | None = None, out: T | None = None, group: Group | None = None,
          timeout: Timeout = None, **others) -> Work[T]:
    """recv that gives a Work at once. After its wait(), `source`, `tag` and `count` tell what came.

    src, tag, like, out: as in recv. Its cancel() takes the receive back, and so does dropping it, unless a message has come.

    Raises what recv raises, in its wait().

    Example::

        works = [tutti.irecv() for other in range(size) if other != rank]
        for other in range(size):
            if other != rank:
                tutti.send(np.array([rank]), dst=other)
        for work in works:
            assert work.wait()[0] == work.source
    """
    if others:
        reject_keywords(irecv, group, others)
    return messages.irecv(src, tag, like, out, group, timeout)


def probe(src: int | None = None, tag: int | None = 0, *, group: Group | None = None, timeout: Timeout = None, **others) -> Message:
    """Waits for a message and reserves it: gives a Message, which tells source, tag, count, dtype and shape, and receives it.

    src, tag: as in recv. No other receive gets a message that was found; a Message that is dropped gives it back.

    Raises Timeout where none comes.

    Example::

        if rank > 0:
            tutti.send(np.ones((rank, 3)), dst=0)
        else:
            for _ in range(1, size):
                message = tutti.probe()
                assert message.shape == (message.source, 3)
                assert message.recv().sum() == message.count
    """
    if others:
        reject_keywords(probe, group, others)
    return messages.probe(src, tag, group, timeout)


def iprobe(src: int | None = None, tag: int | None = 0, *, group: Group | None = None, **others) -> Message | None:
    """probe without waiting: a Message, or None if no such message has come.

    src, tag: as in recv.

    Raises InvalidArgument where there is no rank `src`.

    Example::

        assert tutti.iprobe(tag=99) is None
    """
    if others:
        reject_keywords(iprobe, group, others)
    return messages.iprobe(src, tag, group)


def barrier(*, group: Group | None = None, async_op: bool = False, timeout: Timeout = None, **others) -> None:
    """Returns when every rank of the group has called it.

    Raises Timeout, which names the ranks that are missing.

    Example::

        tutti.barrier(timeout=30)
    """
    if others:
        reject_keywords(barrier, group, others)
    return messages.barrier(group, async_op, timeout)
