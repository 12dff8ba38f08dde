# elastic.py: training that goes on after ranks were lost: from the last checkpoint, with those that tuttirun says are there.
# SPDX-License-Identifier: Apache-2.0
"""A training function that is started anew when ranks are lost::

    def train(job):
        state = job.load({"weights": np.zeros(4), "step": 0})      # of the last checkpoint, or these
        for step in range(state["step"], 1000):
            state["weights"] -= 0.1 * tutti.all_reduce(gradient(state["weights"]), "mean")
            job.save({**state, "step": step + 1})
        return state["weights"]

    weights = tutti.elastic.run(train, "run/last")

`tuttirun --restarts 3` starts all processes again when one fails. `tuttirun --elastic 2:4` starts the one that is missing again:
the others stay, leave the job they had with it, and join the one that tuttirun makes in its place (docs/launcher.md)."""
from __future__ import annotations

import os
import select
import stat
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from . import checkpoint
from ._errors import Aborted, AuthenticationError, Error, InvalidArgument, PeerLost, RendezvousError
from ._native import Group
from ._objects.verbs import broadcast_object
from ._process import lifecycle

__all__ = ["Job", "run"]

Result = TypeVar("Result")
# What a rank meets when another one is lost, or when the job that it was about to join is over.
CONSEQUENCES = (PeerLost, Aborted, RendezvousError, AuthenticationError)
ROUND_SECONDS = 60.0  # tuttirun says it within milliseconds after the last process of a lost rank is gone


class Job:
    """What a training function is given: the world as it is now, and the checkpoint."""

    def __init__(self, folder: Path | None, world: Group) -> None:
        self.world = world
        self.restart = int(os.environ.get("TUTTI_RESTART", "0"))  # how often this job was started, or mended, before
        self._folder = folder

    def load(self, like: Any) -> Any:
        """The last checkpoint, its arrays of the kinds that `like` has; `like` itself if there is none yet. Collective."""
        folder = self._named_folder("load")
        has_one = broadcast_object((folder / "index.json").exists() if self.world.rank == 0 else None, group=self.world)
        return checkpoint.load(folder, like=like, group=self.world) if has_one else like

    def save(self, tree: Any) -> None:
        """Replaces the checkpoint, in one step. Collective."""
        checkpoint.save(self._named_folder("save"), tree, group=self.world)

    def _named_folder(self, what: str) -> Path:
        if self._folder is None:
            raise InvalidArgument(
                f"elastic: {what} needs a folder for the checkpoint; give one, tutti.elastic.run(train, 'run/last'), that all "
                "hosts see"
            )
        return self._folder


def run(
    train: Callable[[Job], Result], folder: str | os.PathLike[str] | None = None, *, timeout: float | None = None
) -> Result:
    """Joins the job, calls `train(job)` and gives what it returns. When ranks are lost meanwhile and tuttirun mends the job
    (``--elastic``), joins it again and calls `train` again. Everything that belongs to a group, compiled functions of JAX and TensorFlow
    and wrapped models included, has to be made inside of `train`.

    folder: where the checkpoint lies; `timeout` (seconds) is that of `tutti.init()`: also how long a rank waits for others that
    have not noticed a loss yet.
    """
    place = None if folder is None else Path(folder)
    rounds = Rounds.of_this_process()
    while True:
        # While this process was started, or left a job, the next round may have begun: nobody waits where it was told to go.
        if rounds is not None and (newer := rounds.wait(0)):
            os.environ.update(newer)
        try:
            return train(Job(place, lifecycle.init(timeout=timeout)))
        except Exception as error:
            if rounds is None or not _is_consequence(error):
                raise
            # The error may be about a round that is over: the newest one counts.
            if not (variables := rounds.wait(ROUND_SECONDS)):
                raise
        _leave()
        os.environ.update(variables)


def _is_consequence(error: BaseException) -> bool:
    return any(isinstance(one, CONSEQUENCES) for one in _chain(error))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _leave() -> None:
    """Leaves the job that is broken. What others did not take part in cannot end well: that is why we are here."""
    if (torch := sys.modules.get("torch")) and torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    try:
        lifecycle.finalize()
    except Error:
        pass
    if jax := sys.modules.get("jax"):
        jax.clear_caches()  # compiled programs hold groups


class Rounds:
    """The pipe over which `tuttirun --elastic` says of which job this process is to be a rank now: a line of NAME=VALUE with
    tabs between."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._text = b""

    @classmethod
    def of_this_process(cls) -> Rounds | None:
        number = os.environ.get("TUTTI_ROUNDS_FD", "")
        if not number.isdigit():
            return None
        try:
            is_pipe = stat.S_ISFIFO(os.fstat(int(number)).st_mode)
        except OSError:
            return None  # a program that a rank has started has the variable, but not the pipe
        if is_pipe:
            os.set_inheritable(int(number), False)
            os.set_blocking(int(number), False)
        return cls(int(number)) if is_pipe else None

    def wait(self, seconds: float) -> dict[str, str] | None:
        """The newest round that this process has not been told of yet; None if there is none in time, or no launcher any more."""
        limit = time.monotonic() + seconds
        while b"\n" not in self._text:
            poll = select.poll()
            poll.register(self._pipe, select.POLLIN)
            if not poll.poll(max(0.0, limit - time.monotonic()) * 1000) or not self._read():
                return None
        while self._read_if_ready():
            pass
        *lines, self._text = self._text.split(b"\n")
        return dict(pair.split("=", 1) for pair in lines[-1].decode().split("\t"))

    def _read_if_ready(self) -> bool:
        return bool(select.select([self._pipe], [], [], 0)[0]) and self._read()

    def _read(self) -> bool:
        try:
            piece = os.read(self._pipe, 65536)
        except BlockingIOError:
            return True
        self._text += piece
        return bool(piece)
