# notebook.py: %load_ext tutti: cells of a notebook that run on several ranks, which live on between cells.
# SPDX-License-Identifier: Apache-2.0
"""The kernel is the parent of the ranks, and serves the store at which they meet. It hands each the text of a cell, shows what they
print and waits for all. A guard, which reads a pipe that only the kernel can write to, ends them when the kernel is gone, however
that came about: it leads their process group, and kills it."""
from __future__ import annotations

import atexit
import base64
import itertools
import multiprocessing.connection
import os
import secrets
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from typing import Any

from . import outcomes, spawn
from .._errors import Error, InvalidArgument
from .._native import StoreServer

_GUARD = "cat >/dev/null; kill -9 0"  # `kill … 0`: the process group of the caller
_RANK = "import sys; sys.path[:] = {path!r}; from tutti._process import notebook_rank; notebook_rank.main({channel}, {rank})"
_START_S = 120.0  # to import and to meet, on a machine with other work
_LEAVE_S = 10.0  # for goodbyes
_INTERRUPT_S = 15.0  # for a rank to give in to Ctrl-C; then it is killed, and the others with it
_OTHERS_S = 1.0  # after the first failure, before those that still run are interrupted: they may be failing, too
_CHUNK = 1 << 16


class RankError(Error):
    """A cell failed on some ranks. What they raised has been printed; this names the first."""

    def __init__(self, text: str, traceback: str = ""):
        super().__init__(text)
        self.traceback = traceback

    def _render_traceback_(self) -> list[str]:
        """What IPython shows: the ranks' traceback, and nothing of the kernel's, which is of no use to anybody."""
        return [*self.traceback.splitlines(), f"RankError: {self}"]


class _Rank:
    """One process, its channel and what it prints."""

    def __init__(self, number: int, environment: dict[str, str], group: int):
        self.number = number
        self.channel, theirs = multiprocessing.Pipe()
        fd = theirs.fileno()
        program = _RANK.format(path=sys.path, channel=fd, rank=number)
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-c", program], env=environment, pass_fds=(fd,), process_group=group, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)  # fmt: skip
        finally:
            theirs.close()
        assert self.process.stdout and self.process.stderr
        self.streams = [self.process.stdout, self.process.stderr]
        self.unfinished = {stream: b"" for stream in self.streams}  # the beginnings of lines
        for stream in self.streams:
            os.set_blocking(stream.fileno(), False)

    def show(self, stream: Any, last: bool = False) -> None:
        """Prints the lines that have come, each with the rank before it; with `last` also one that has not ended."""
        text = self.unfinished[stream]
        while chunk := _read(stream):
            text += chunk
        if chunk == b"" and stream in self.streams:
            self.streams.remove(stream)
        *lines, rest = text.split(b"\n")
        self.unfinished[stream] = b"" if last else rest
        out = sys.stdout if stream is self.process.stdout else sys.stderr
        for line in [*lines, rest] if last and rest else lines:
            out.write(f"[{self.number}] {line.decode(errors='replace')}\n")

    def show_all(self) -> None:
        for stream in self.unfinished:
            self.show(stream, last=True)


def _read(stream: Any) -> bytes | None:
    """What is there: nothing at the end, None if nothing has come yet."""
    try:
        return os.read(stream.fileno(), _CHUNK)
    except BlockingIOError:
        return None


class Ranks:
    """The processes behind the cells."""

    def __init__(self, size: int):
        secret = secrets.token_hex(32)
        self.store: StoreServer | None = StoreServer(secret)
        self.ranks: list[_Rank] = []
        self.guard = subprocess.Popen(["/bin/sh", "-c", _GUARD], stdin=subprocess.PIPE, process_group=0)
        common = spawn._common_environment(size, self.store.address, secret) | {"MPLBACKEND": "Agg", "PYTHONUNBUFFERED": "1"}
        try:
            for rank in range(size):
                self.ranks.append(_Rank(rank, common | {"RANK": str(rank), "LOCAL_RANK": str(rank)}, self.guard.pid))
            self._raise_failures(self._collect(time.monotonic() + _START_S))  # each says that it has joined
        except BaseException:
            self.kill()
            raise

    @property
    def size(self) -> int:
        return len(self.ranks)

    def run(self, source: str, name: str) -> None:
        """Runs a cell on all ranks; raises RankError if it failed on one."""
        for rank in self.ranks:
            try:
                rank.channel.send((source, name))
            except OSError:
                pass  # it has ended, which is found below
        outcomes = self._collect()
        self._display(outcomes)
        self._raise_failures(outcomes)

    def stop(self) -> None:
        """Lets the ranks say goodbye, and ends them."""
        for rank in self.ranks:
            try:
                rank.channel.send(None)
            except OSError:
                pass
        limit = time.monotonic() + _LEAVE_S
        for rank in self.ranks:
            try:
                rank.process.wait(max(0.0, limit - time.monotonic()))
            except subprocess.TimeoutExpired:
                break
        self.kill()

    def kill(self) -> None:
        """Ends the ranks and whatever they have started."""
        try:
            os.killpg(self.guard.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        assert self.guard.stdin
        self.guard.stdin.close()
        self.guard.wait()
        for rank in self.ranks:
            rank.process.wait()
            rank.show_all()
            for stream in (*rank.unfinished, rank.channel):
                stream.close()
        self.ranks, self.store = [], None

    def _collect(self, deadline: float | None = None) -> dict[int, dict[str, Any]]:
        """Waits until every rank has reported, and shows meanwhile what they print. What they report, the first one first. Ctrl-C
        goes to the ranks. So does a failure, to those that still run: they may wait for the one that failed."""
        outcomes: dict[int, dict[str, Any]] = {}
        interrupt_at, kill_at, interrupted = None, deadline, False
        while waiting := [rank for rank in self.ranks if rank.number not in outcomes]:
            try:
                self._listen(waiting, outcomes, kill_at if interrupt_at is None else interrupt_at)
            except KeyboardInterrupt:
                if interrupted:
                    self.kill()
                    raise
                interrupt_at = 0.0
            now = time.monotonic()
            if kill_at is not None and now >= kill_at:
                names = _names(rank.number for rank in waiting)
                self.kill()
                raise RankError(f"{names} did not answer; all ranks were ended, and their variables are gone")
            if interrupt_at is None and not interrupted and any(each["error"] for each in outcomes.values()):
                interrupt_at = now + _OTHERS_S
            if interrupt_at is not None and now >= interrupt_at:
                for rank in waiting:
                    rank.process.send_signal(signal.SIGINT)
                interrupted, interrupt_at, kill_at = True, None, now + _INTERRUPT_S
        for rank in self.ranks:
            rank.show_all()
        return outcomes

    def _listen(self, waiting: list[_Rank], outcomes: dict[int, dict[str, Any]], until: float | None) -> None:
        """Shows and notes what comes next."""
        sources = {rank.channel: rank for rank in waiting} | {stream: rank for rank in self.ranks for stream in rank.streams}
        timeout = None if until is None else max(0.0, until - time.monotonic())
        for source in multiprocessing.connection.wait(list(sources), timeout):
            rank = sources[source]
            if source is not rank.channel:
                rank.show(source)
                continue
            try:
                outcomes[rank.number] = rank.channel.recv()
            except (EOFError, OSError):
                raise self._death(rank) from None

    def _death(self, rank: _Rank) -> RankError:
        """A rank has ended; the others end, too."""
        try:
            reason = outcomes.ending(rank.process.wait(_LEAVE_S))
        except subprocess.TimeoutExpired:
            reason = "closed its channel"
        size = self.size
        self.kill()
        return RankError(f"rank {rank.number} of {size} {reason}; the others were ended, and all variables are gone")

    def _raise_failures(self, outcomes: dict[int, dict[str, Any]]) -> None:
        """What the ranks raised, as one error for the notebook, with each different traceback once."""
        errors = {rank: outcome["error"] for rank, outcome in outcomes.items() if outcome["error"]}
        if not errors:
            return
        alike: dict[str, list[int]] = {}
        for rank, error in errors.items():
            alike.setdefault(error["traceback"], []).append(rank)
        text = "\n".join(f"{_names(ranks)}:\n{traceback}" for traceback, ranks in alike.items())
        first, error = next(iter(errors.items()))
        hint = ""
        if any(each["summary"].startswith("KeyboardInterrupt") for each in errors.values()):
            hint = "; a group in which a call was interrupted is broken: %tutti restart makes new ranks"
        raise RankError(f"rank {first} of {self.size}: {error['summary']}{hint}", text)

    def _display(self, outcomes: dict[int, dict[str, Any]]) -> None:
        """The values of the last line; tables, pictures and plots are rank 0's."""
        from IPython.display import publish_display_data

        for rank in sorted(outcomes):
            data = outcomes[rank]["value"]
            if data and (rank != 0 or set(data) == {"text/plain"}):
                print("\n".join(f"[{rank}] {line}" for line in data["text/plain"].split("\n")))
            elif data:
                publish_display_data(data)
        for picture in outcomes[0]["figures"]:
            publish_display_data({"image/png": base64.b64encode(picture).decode()})


def _names(ranks: Iterable[int]) -> str:
    ranks = sorted(ranks)
    return f"rank {ranks[0]}" if len(ranks) == 1 else "ranks " + ", ".join(map(str, ranks))


_ranks: Ranks | None = None


def _alive() -> Ranks | None:
    return _ranks if _ranks is not None and _ranks.size else None


def _size_of(words: list[str]) -> int | None:
    """The number behind -n, if there is one."""
    if not words:
        return None
    if len(words) == 1 and words[0].startswith("-n") and words[0][2:].isdigit():
        words = ["-n", words[0][2:]]
    if len(words) != 2 or words[0] != "-n" or not words[1].isdigit() or int(words[1]) < 1:
        raise InvalidArgument(f"%%tutti {' '.join(words)}: write %%tutti -n 4, with the number of ranks, or %%tutti alone")
    return int(words[1])


def cell_magic(line: str, cell: str) -> None:
    """%%tutti -n 4: runs the cell on 4 ranks, which live on for later cells. Without -n: on those that are there, or on one per
    core. Names of one cell are there in the next, on each rank its own; `tutti` and `world` are there from the beginning."""
    global _ranks
    size = _size_of(shlex.split(line))
    ranks = _alive()
    if ranks is not None and size not in (None, ranks.size):
        raise InvalidArgument(f"%%tutti -n {size}: there are {ranks.size} ranks, with variables of yours; %tutti stop ends them")
    if ranks is None:
        ranks = _ranks = Ranks(size or len(os.sched_getaffinity(0)))
    ranks.run(cell, f"<cell {next(_numbers)}>")


_numbers = itertools.count(1)


def line_magic(line: str) -> None:
    """%tutti stop ends the ranks, %tutti restart replaces them by fresh ones, %tutti status tells of them."""
    global _ranks
    ranks = _alive()
    word = line.strip()
    if word == "stop":
        stop()
    elif word == "restart" and ranks is not None:
        size = ranks.size
        stop()
        _ranks = Ranks(size)
    elif word == "restart":
        raise InvalidArgument("%tutti restart: there are no ranks; %%tutti -n 4 starts some")
    elif word in ("", "status"):
        print("no ranks" if ranks is None else "\n".join(f"rank {each.number}: process {each.process.pid}" for each in ranks.ranks))
    else:
        raise InvalidArgument(f"%tutti {word}: there are %tutti stop, %tutti restart and %tutti status; cells begin with %%tutti")


def stop() -> None:
    """Ends the ranks, if there are any."""
    ranks = _alive()
    if ranks is not None:
        ranks.stop()


def load_ipython_extension(shell: Any) -> None:
    """%load_ext tutti."""
    shell.register_magic_function(cell_magic, "cell", "tutti")
    shell.register_magic_function(line_magic, "line", "tutti")
    atexit.register(stop)


def unload_ipython_extension(shell: Any) -> None:
    """%unload_ext tutti."""
    stop()
    atexit.unregister(stop)
