# debug.py: a debugger on one rank, while the others wait.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import contextlib
import math
import os
import pdb
import shlex
import socket
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from .. import _native
from .._calls.dispatch import group_or_world
from .._errors import Error, InvalidArgument
from .terminal import find_terminal, has_input, terminal_as_standard, wait_for_visitor


class RankPdb(pdb.Pdb):
    """pdb at a place where a person can type, which calls `release` when that person first lets the program go on."""

    def __init__(self, banner: str, release: Callable[[], None], **files: Any):
        super().__init__(**files)
        self._terminal = find_terminal() if not files else None
        if files.get("stdout") is sys.stdout:
            self.prompt = "(Pdb) \n"  # mpirun and srun, which pass on what is typed, show whole lines only
        self._banner = banner
        self._release: Callable[[], None] | None = release

    def interaction(self, frame: FrameType, traceback: Any, *rest: Any) -> None:
        try:
            if self._terminal is None:
                self._talk(frame, traceback, *rest)
            else:
                with terminal_as_standard(self._terminal):
                    own = self.stdin, self.stdout
                    self.stdin, self.stdout = sys.stdin, sys.stdout
                    try:
                        self._talk(frame, traceback, *rest)
                    finally:
                        self.stdin, self.stdout = own
        finally:
            release, self._release = self._release, None
            if release is not None:
                release()

    def _talk(self, frame: FrameType, traceback: Any, *rest: Any) -> None:
        if self._banner:
            self.message(self._banner)
            self._banner = ""
        super().interaction(frame, traceback, *rest)


def _place(group: _native.Group) -> str:
    return f"rank {group.rank} of {group.size} on {socket.gethostname()}, process {os.getpid()}"


def _attach_command(name: str) -> str:
    """The command that attaches a terminal to this rank; in a Slurm job, with the node if it is known."""
    command = f"{shlex.quote(sys.executable)} -m tutti.attach {name}"
    job, node = os.environ.get("SLURM_JOB_ID"), os.environ.get("SLURMD_NODENAME")
    if job is None or node is None:
        return command
    return f"srun --jobid={job} --overlap --nodelist={node} --nodes=1 --ntasks=1 --pty {command}"


def _files_for_debugger(group: _native.Group) -> dict[str, Any]:
    """Nothing where there is a terminal; otherwise what pdb reads and writes."""
    if find_terminal() is not None:
        return {}
    if has_input():
        return {"stdin": sys.stdin, "stdout": sys.stdout}

    def announce(name: str) -> None:
        print(
            f"{_place(group)}: waits at tutti.breakpoint for someone to type there: {_attach_command(name)}",
            file=sys.stderr,
            flush=True,
        )

    typed, shown = wait_for_visitor(announce)
    return {"stdin": typed, "stdout": shown}


def _wait_for_all(group: _native.Group) -> None:
    group.run(_native.Call("barrier"), None, timeout=math.inf)


def breakpoint(rank: int = 0, group: _native.Group | None = None) -> None:
    """Stops one rank in the debugger (pdb) at the line after this one; the others wait, without a timeout. ::

        tutti.breakpoint(0)        # every rank calls it

    Works under tuttirun, torchrun, mpirun, srun and by hand. The debugger talks to the terminal from which the job was
    started, whichever rank it is on. Where there is none (a batch job, another host), it reads standard input; without
    that, the rank says how to attach: ``python -m tutti.attach NAME`` on its host, in a job of Slurm with the srun that
    brings one there.

    When the debugged rank first goes on (``c``, ``n``, ``s``, …) the others go on, too, so that one can step over
    collectives. ``q`` ends the rank, and with it the job.
    """
    group = group_or_world(group)
    if not 0 <= rank < group.size:
        raise InvalidArgument(f"breakpoint: there is no rank {rank} in a group of {group.size}")
    if group.rank != rank:
        _wait_for_all(group)
        return

    def release() -> None:
        with contextlib.suppress(Error):  # the program's next call reports a rank that is gone
            _wait_for_all(group)

    banner = f"--- {_place(group)}; c: go on, n: next line, h: help, q: end the job ---"
    RankPdb(banner, release, **_files_for_debugger(group)).set_trace(sys._getframe(1))
