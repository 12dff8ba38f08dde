# watch.py: what this process's calls cost, and the answer to tools that ask where its program is.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import _thread
import os
import sys
from types import FrameType

from .. import _native

_depth_max = 40


def stats() -> dict[str, dict[str, dict[str, float]]]:
    """What the calls of this process have cost since it joined the job: by group, then by verb: ``calls``, ``bytes`` (of each call
    the larger of input and output), ``failed``, ``seconds`` from beginning to end (of those that were not over at once), and
    ``waited``: the seconds for which the program's threads stood in calls and in ``wait()``.

    Example::

        tutti.all_reduce(np.ones(4))
        counts = tutti.stats()["world"]["all_reduce"]
        assert counts["calls"] >= 1 and counts["bytes"] >= 32

    Raises InvalidArgument before init().
    """
    return _native.stats()


def dump_calls(path: str | os.PathLike[str]) -> None:
    """Writes the latest calls of this process, its counts, its last error and what it waits for into a file, as JSON.

    Raises InvalidArgument before init(), and Error where the file cannot be written.
    """
    _native.dump_calls(os.fspath(path))


def start_answering() -> None:
    """Has a thread answer tools and other ranks that ask where this program is (`tutti where`). It sleeps until then."""
    try:
        _thread.start_new_thread(_answer, (_native.Answers(),))
    except RuntimeError:  # no more threads: nobody can ask
        pass


def _answer(answers: _native.Answers) -> None:
    while answers.wait():
        try:
            answers.answer(_stacks())
        except Exception as error:
            answers.answer(f"its stack cannot be read: {error}")


def _stacks() -> str:
    """The innermost line first, as in the records of calls; the main thread before the others."""
    frames = sys._current_frames()
    own = _thread.get_ident()
    threading = sys.modules.get("threading")
    names = {} if threading is None else {t.ident: t.name for t in threading.enumerate()}
    main = threading.main_thread().ident if threading is not None else None
    texts = []
    for ident, frame in sorted(frames.items(), key=lambda item: item[0] != main):
        lines = [] if ident == own else _lines(frame)
        if lines:
            name = "" if ident == main or len(frames) == 2 else f"thread {names.get(ident, ident)}:\n"
            texts.append(name + "\n".join(lines))
    return "\n".join(texts)


def _lines(frame: FrameType | None) -> list[str]:
    lines: list[str] = []
    while frame is not None and len(lines) < _depth_max:
        code = frame.f_code
        lines.append(f"{code.co_filename}:{frame.f_lineno} in {code.co_name}")
        frame = frame.f_back
    return lines
