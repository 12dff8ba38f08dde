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
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from .._errors import Error, PeerLost, Timeout
from . import outcomes
from .outcomes import RankResult, RankTraceback, leave, portable

LOG_BYTES_MAX = 1 << 20  # of each rank's output that is kept
FOREIGN = ("OMPI_", "PMI_", "PMIX_", "SLURM_STEP", "TORCHELASTIC_", "TUTTI_STORE", "TUTTI_LAUNCHER_FD")


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
    variables = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)} | environment
    streams = contextlib.redirect_stdout(log.beside(sys.stdout)), contextlib.redirect_stderr(log.beside(sys.stderr))
    with outcomes.environment(variables), streams[0], streams[1]:
        try:
            fn, args, kwargs = _pickler().loads(call)
            try:
                result.value = fn(*args, **kwargs)
            finally:
                leave()
        except BaseException as error:  # SystemExit included: it must not end the worker
            result.error = portable(error if isinstance(error, Exception) else Error(f"{type(error).__name__}: {error}"))
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


def pack(fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any] | None) -> bytes:
    return bytes(_pickler().dumps((fn, tuple(args), dict(kwargs or {}))))


def arranged(places: Sequence[Where]) -> tuple[list[int], list[Where]]:
    """Which place becomes which rank, those of one host one after the other; and the ranks' places in that order."""
    hosts = [place.host for place in places]
    order = sorted(range(len(places)), key=lambda index: (hosts.index(hosts[index]), index))
    is_one_host = len(set(hosts)) == 1
    return order, [Where(places[index].host, "127.0.0.1") if is_one_host else places[index] for index in order]


def lost(rank: int, place: Where, reason: str) -> RankResult:
    """In the caller: what is said of a rank whose process is gone."""
    error = PeerLost(f"rank {rank} on {place.host} is lost: {reason}", rank, place.host, reason)
    return RankResult(rank, place.host, error=error, died=True)


def delivered(found: Sequence[RankResult], output: bool, results: Literal["values", "all"]) -> list[Any]:
    """What the caller asked for; with `output` what the ranks printed is shown first."""
    if output:
        _show(found)
    return list(found) if results == "all" else outcomes.values(found)


def _show(results: Sequence[RankResult]) -> None:
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
