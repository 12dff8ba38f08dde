# placed.py: a function as ranks in the workers of another system, Ray's actors or Dask's workers.
# SPDX-License-Identifier: Apache-2.0
"""That system starts the processes and carries what they return. The ranks meet as those of a job that was started by hand on
several hosts: rank 0 finds an address that the others reach and a free port there, and all get a secret made for this run."""
from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import pickle
import secrets
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .._errors import Aborted, Error, PeerLost, RendezvousError, Timeout
from .spawn import RankTraceback

LOG_BYTES_MAX = 1 << 20  # of each rank's output that is kept
FOREIGN = ("OMPI_", "PMI_", "PMIX_", "SLURM_STEP", "TORCHELASTIC_", "TUTTI_STORE", "TUTTI_LAUNCHER_FD")


@dataclasses.dataclass
class RankResult:
    """What one rank returned or raised, and what it printed."""

    rank: int
    host: str
    value: Any = None
    error: BaseException | None = None
    log: str = ""
    died: bool = False  # its process is gone: the error is what the caller knows of that

    @property
    def is_consequence(self) -> bool:
        """Whether its error only says that somebody else failed."""
        return not self.died and isinstance(self.error, (PeerLost, Aborted, Timeout, RendezvousError))


@dataclasses.dataclass
class Where:
    """What a worker says of itself before ranks are numbered."""

    host: str
    address: str


def where(towards: str = "") -> Where:
    """In the worker: its host, and its address on the network that leads to `towards`."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((towards or "10.255.255.255", 9))
            address = probe.getsockname()[0]
    except OSError:
        address = "127.0.0.1"
    return Where(socket.gethostname(), address)


def free_port(address: str) -> int:
    """In rank 0's worker: a port that nobody has now."""
    with socket.socket() as probe:
        probe.bind((address, 0))
        return int(probe.getsockname()[1])


def environments(places: Sequence[Where], port: int) -> list[dict[str, str]]:
    """Of each rank, in the order of the places."""
    hosts = [place.host for place in places]
    job = {"TUTTI_SECRET": secrets.token_hex(32), "TUTTI_JOB": secrets.token_hex(8), "WORLD_SIZE": str(len(places)),
           "MASTER_ADDR": places[0].address, "MASTER_PORT": str(port)}
    return [
        job | {"RANK": str(rank), "LOCAL_RANK": str(hosts[:rank].count(host)), "LOCAL_WORLD_SIZE": str(hosts.count(host))}
        for rank, host in enumerate(hosts)
    ]


def run_rank(call: bytes, environment: dict[str, str]) -> bytes:
    """In the worker: calls the function as a rank, and gives a pickled RankResult whatever happens."""
    result = RankResult(int(environment["RANK"]), socket.gethostname())
    log = _Log()
    with _variables(environment), contextlib.redirect_stdout(log.beside(sys.stdout)), contextlib.redirect_stderr(log.beside(sys.stderr)):
        try:
            fn, args, kwargs = _pickler().loads(call)
            try:
                result.value = fn(*args, **kwargs)
            finally:
                _leave()
        except BaseException as error:  # SystemExit included: it must not end the worker
            result.error = _portable(error)
            result.error.__cause__ = RankTraceback(traceback.format_exc())
            result.error.add_note(f"raised on rank {result.rank} (process {os.getpid()} on {result.host})")
    result.log = log.text()
    try:
        return bytes(_pickler().dumps((result, _text_of(result.error))))
    except Exception as error:
        result.value, result.error = None, Error(f"rank {result.rank}: its result cannot be sent: {error}")
        return bytes(_pickler().dumps((result, "")))


def timed_out(environment: dict[str, str], seconds: float) -> bytes:
    """In the worker: what is said of a rank that has not returned in time."""
    rank = int(environment["RANK"])
    error = Timeout(f"rank {rank} of {environment['WORLD_SIZE']} had not returned after {seconds} s")
    return pickle.dumps((RankResult(rank, socket.gethostname(), error=error), ""))


def _text_of(error: BaseException | None) -> str:
    """An error loses its cause on the way."""
    return "" if error is None else str(getattr(error.__cause__, "text", ""))


def read(answer: bytes) -> RankResult:
    """In the caller."""
    result, text = pickle.loads(answer)
    if result.error is not None and text:
        result.error.__cause__ = RankTraceback(text)
    return result


def pack(fn: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> bytes:
    return bytes(_pickler().dumps((fn, tuple(args), kwargs)))


def values(results: Sequence[RankResult]) -> list[Any]:
    """What the ranks returned, by rank; or raises the error that came first, not those that followed from it."""
    failed = [result for result in results if result.error is not None]
    if failed:
        cause = next((result for result in failed if not result.is_consequence), failed[0])
        assert cause.error is not None
        if cause.log:
            cause.error.add_note(f"what rank {cause.rank} printed last:\n" + "\n".join(cause.log.splitlines()[-20:]))
        raise cause.error
    return [result.value for result in sorted(results, key=lambda result: result.rank)]


def show(results: Sequence[RankResult]) -> None:
    """What the ranks printed, each line with its rank before it, as tuttirun shows it."""
    for result in sorted(results, key=lambda result: result.rank):
        for line in result.log.splitlines():
            print(f"[{result.host}:{result.rank}] {line}")


def _pickler() -> Any:
    """cloudpickle, which Ray and Dask bring: functions of a notebook or a script travel by value."""
    try:
        import cloudpickle

        return cloudpickle
    except ImportError:
        from ray import cloudpickle

        return cloudpickle


def _leave() -> None:
    from . import lifecycle

    if lifecycle.is_initialized():
        lifecycle.finalize()


def _portable(error: BaseException) -> BaseException:
    try:
        copy = pickle.loads(pickle.dumps(error))
        if type(copy) is type(error) and isinstance(error, Exception):
            return error
    except Exception:
        pass
    return Error(f"{type(error).__name__}: {error}")


@contextlib.contextmanager
def _variables(changed: dict[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    for name in [name for name in before if name.startswith(FOREIGN)]:
        del os.environ[name]
    os.environ.update(changed)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


class _Log:
    """The end of what a rank prints, both streams in one."""

    def __init__(self) -> None:
        self._text = ""
        self._lock = threading.Lock()

    def add(self, text: str) -> None:
        with self._lock:
            self._text = (self._text + text)[-LOG_BYTES_MAX:]

    def text(self) -> str:
        with self._lock:
            return self._text

    def beside(self, stream: Any) -> io.TextIOBase:
        return _Copy(self, stream)


class _Copy(io.TextIOBase):
    """A stream that also goes to the log."""

    def __init__(self, log: _Log, stream: Any) -> None:
        self._log, self._stream = log, stream

    def write(self, text: str) -> int:
        self._log.add(text)
        self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        self._stream.flush()

    def writable(self) -> bool:
        return True
