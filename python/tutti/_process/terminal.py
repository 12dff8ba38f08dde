# terminal.py: the terminal on which a user can debug this rank, under any launcher.
# SPDX-License-Identifier: Apache-2.0
"""Launchers give ranks pipes for output and one of them standard input. A debugger wants the terminal itself. In this
order: standard input, if it is a terminal, a pipe or a file; the terminal that controls this process; the one that the
launcher reads from; and if there is nothing at all, a socket that a person of the same user attaches to."""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import signal
import socket
import stat
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

_CREDENTIALS = struct.Struct("3i")  # of SO_PEERCRED: process, user, group


def _is_nothing(descriptor: int) -> bool:
    """Whether it is closed, /dev/null, or a pipe that has come to its end, as ranks of a batch job get from srun."""
    try:
        if os.fstat(descriptor).st_rdev == os.stat(os.devnull).st_rdev:
            return True
    except OSError:
        return True
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    return waiting.poll(0) == [(descriptor, select.POLLHUP)]


def _parent_of(process: int) -> int:
    words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return int(words[1])


def _terminal_of(process: int) -> str | None:
    """The terminal that a process reads from; "" if it reads from something else; None if from nothing."""
    link = f"/proc/{process}/fd/0"
    if not os.path.exists(link) or os.stat(link).st_rdev == os.stat(os.devnull).st_rdev:
        return None
    path = os.readlink(link)
    if path.startswith("anon_inode:"):  # standard input was closed, and its number taken by something else
        return None
    return path if stat.S_ISCHR(os.stat(link).st_mode) and path.startswith(("/dev/pts/", "/dev/tty")) else ""


def _launcher_terminal() -> str | None:
    """The terminal of the nearest ancestor that reads from anything: launchers have guards, which do not."""
    process = os.getppid()
    with contextlib.suppress(OSError, ValueError):  # an ancestor of another user, or one that has just ended
        while process > 1:
            path = _terminal_of(process)
            if path is not None:
                return path or None
            process = _parent_of(process)
    return None


def find_terminal() -> str | None:
    """The path of a terminal of the user who started this rank."""
    if os.isatty(0):
        candidates = [os.ttyname(0)]
    elif _is_nothing(0):
        candidates = ["/dev/tty", _launcher_terminal()]
    else:  # a launcher reads the terminal and passes on what it reads: do not quarrel with it
        candidates = []
    for path in filter(None, candidates):
        with contextlib.suppress(OSError):
            descriptor = os.open(path, os.O_RDWR | os.O_NOCTTY)
            os.close(descriptor)
            return path
    return None


def has_input() -> bool:
    """Whether standard input, which is no terminal, has anything to say."""
    return not _is_nothing(0)


@contextlib.contextmanager
def _in_foreground(terminal: int) -> Iterator[None]:
    """Reading a terminal from the background stops a process: some launchers put ranks there."""
    try:
        before = os.tcgetpgrp(terminal)
    except OSError:  # it does not control this process, so it does not mind who reads
        yield
        return
    if before == os.getpgrp():
        yield
        return
    ignored = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    try:
        os.tcsetpgrp(terminal, os.getpgrp())
        yield
    finally:
        with contextlib.suppress(OSError):
            os.tcsetpgrp(terminal, before)
        signal.signal(signal.SIGTTOU, ignored)


@contextlib.contextmanager
def terminal_as_standard(path: str) -> Iterator[None]:
    """Makes the terminal this process's standard input and output for a while, so that line editing works as ever."""
    sys.stdout.flush()
    terminal = os.open(path, os.O_RDWR | os.O_NOCTTY)
    saved = [os.dup(0), os.dup(1)]
    files = sys.stdin, sys.stdout
    try:
        with _in_foreground(terminal):
            os.dup2(terminal, 0)
            os.dup2(terminal, 1)
            with open(0, closefd=False) as sys.stdin, open(1, "w", closefd=False) as sys.stdout:
                yield
    finally:
        sys.stdin, sys.stdout = files
        for descriptor, own in enumerate(saved):
            os.dup2(own, descriptor)
            os.close(own)
        os.close(terminal)


def user_behind(link: socket.socket) -> int:
    """Whose process is at the other end of a connection, or listens there: the kernel's word."""
    return _CREDENTIALS.unpack(link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))[1]


def wait_for_visitor(announce) -> tuple[IO[str], IO[str]]:
    """Waits, for as long as it takes, for `python -m tutti.attach NAME`; gives what it types and what it shows.

    The socket has no place in the file system, so nothing can be left behind; only this user gets in. Nobody can take its
    name beforehand, since nobody can guess it.
    """
    with socket.socket(socket.AF_UNIX) as listener:
        name = f"tutti-{os.getpid()}-{secrets.token_hex(8)}"
        listener.bind(f"\0{name}")
        listener.listen(1)
        announce(name)
        while True:
            visitor, _ = listener.accept()
            if user_behind(visitor) == os.getuid():
                return visitor.makefile("r"), visitor.makefile("w")
            visitor.close()
