# spawn.py: ranks as processes of a script, without a launcher.
# SPDX-License-Identifier: Apache-2.0
"""The parent serves the store at which the ranks meet, as tuttirun does, and listens to each on a pipe: a result, an
error, or silence and an exit status. The first failure ends the others; its cause is raised, not the errors
that followed from it."""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import multiprocessing.connection
import os
import pickle
import resource
import secrets
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, TypeVar

from .._errors import Error, InvalidArgument, PeerLost, Timeout
from .._native import StoreServer
from .outcomes import RankResult, RankTraceback, ending, environment, leave, portable, values

_LAUNCHERS = ("OMPI_", "PMI_", "PMIX_", "SLURM_", "TORCHELASTIC_", "TUTTI_STORE", "TUTTI_JOB", "MASTER_")
_GRACE_S = 3.0  # for ranks to end after SIGTERM, and for a cause to arrive after its consequence
_PR_SET_PDEATHSIG = 1
Result = TypeVar("Result")


def _common_environment(size: int, store: str, secret: str) -> dict[str, str]:
    """What every rank gets, as from tuttirun: where to meet, also for torch.distributed, and a share of the cores."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_LAUNCHERS)}
    threads = max(1, len(os.sched_getaffinity(0)) // size)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return (
        {"OMP_NUM_THREADS": str(threads)}
        | kept
        | {
            "WORLD_SIZE": str(size),
            "LOCAL_WORLD_SIZE": str(size),
            "GROUP_RANK": "0",
            "NODE_RANK": "0",
            "GROUP_WORLD_SIZE": "1",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "TUTTI_STORE": store,
            "TUTTI_JOB": secrets.token_hex(8),
            "TUTTI_SECRET": secret,
        }
    )


def _tie_to_parent(parent: int) -> None:
    """A rank does not outlive the script, even if the script is killed."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


@contextlib.contextmanager
def _children_are_kept() -> Iterator[bool]:
    """While SIGCHLD is ignored, which a process inherits, the kernel reaps children unasked: nobody could wait for a rank,
    and the number of one that ended may be another process's. Gives whether it was ignored, for the ranks. The C function,
    because spawn may be called from any thread."""
    ignored = signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN
    libc = ctypes.CDLL(None)
    libc.signal.argtypes, libc.signal.restype = (ctypes.c_int, ctypes.c_void_p), ctypes.c_void_p
    if ignored:
        libc.signal(signal.SIGCHLD, int(signal.SIG_DFL))
    try:
        yield ignored
    finally:
        if ignored:
            libc.signal(signal.SIGCHLD, int(signal.SIG_IGN))


def _rank_main(fn: Callable, args: tuple, parent: int, ignores_child_end: bool, pipe: Any) -> None:
    _tie_to_parent(parent)
    if ignores_child_end:  # as in the script
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        value = fn(*args)
        leave()
        pipe.send((value, None, ""))
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
        if status == 0:
            pipe.send((None, None, ""))
        raise
    except BaseException as error:
        pipe.send((None, portable(error), traceback.format_exc()))
        sys.exit(1)


class _RankPool:
    """The processes of one spawn."""

    def __init__(self, fn: Callable, nprocs: int, args: tuple, start_method: str, ignores_child_end: bool):
        context = multiprocessing.get_context(start_method)
        self.size = nprocs
        self.ignores_child_end = ignores_child_end
        self.processes: list = []
        self.pipes: list = []
        secret = os.environ.get("TUTTI_SECRET") or secrets.token_hex(32)
        self.store = StoreServer(secret)  # where the ranks meet; loopback only
        common = _common_environment(nprocs, self.store.address, secret)
        try:
            for rank in range(nprocs):
                with environment(common | {"RANK": str(rank), "LOCAL_RANK": str(rank)}):
                    self._start(context, fn, args, rank)
        except BaseException:
            self.end()
            raise

    def _start(self, context: Any, fn: Callable, args: tuple, rank: int) -> None:
        ours, theirs = context.Pipe(duplex=False)
        known = (fn, args, os.getpid(), self.ignores_child_end, theirs)
        process = context.Process(target=_rank_main, args=known, name=f"tutti rank {rank}")
        self.pipes.append(ours)
        try:
            process.start()
            self.processes.append(process)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise InvalidArgument(
                f"spawn: the function or its arguments cannot be sent to the new processes: {error}; pass what can be"
                ' pickled, or start_method="fork"'
            ) from error
        except BlockingIOError as error:  # EAGAIN of fork
            limit = resource.getrlimit(resource.RLIMIT_NPROC)[0]
            raise Error(
                f"spawn: rank {rank} of {self.size} could not be started: {error.strerror}: the limit on processes and threads is "
                f"reached (of the user, `ulimit -u`: {'none' if limit == resource.RLIM_INFINITY else limit}; or pids.max of the "
                "cgroup); raise it, or start fewer ranks, or fewer threads in each (OMP_NUM_THREADS)"
            ) from None
        finally:
            theirs.close()

    def outcome(self, rank: int) -> RankResult:
        """What a rank that has spoken or ended has to say."""
        host = socket.gethostname()
        try:
            value, error, text = self.pipes[rank].recv()
        except (EOFError, OSError):
            return RankResult(rank, host, error=self._death(rank), died=True)
        except Exception as error:  # something that cannot be unpickled here
            return RankResult(rank, host, error=Error(f"rank {rank} of {self.size}: its result could not be read: {error}"))
        if error is not None:
            error.add_note(f"raised on rank {rank} of {self.size} (process {self.processes[rank].pid})")
            error.__cause__ = RankTraceback(text)
        return RankResult(rank, host, value, error)

    def _death(self, rank: int) -> Error:
        process = self.processes[rank]
        process.join(_GRACE_S)
        reason = ending(process.exitcode)
        text = f"rank {rank} of {self.size} (process {process.pid}) {reason} before its function returned"
        return PeerLost(text, rank, socket.gethostname(), reason)

    def wait(self, deadline: float | None) -> list[RankResult]:
        """Outcomes as they come, until all are there or a cause of failure is."""
        outcomes: list[RankResult] = []
        open_ranks = {pipe: rank for rank, pipe in enumerate(self.pipes)}
        while open_ranks:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            ready = multiprocessing.connection.wait(list(open_ranks), left)
            if not ready and any(outcome.error for outcome in outcomes):
                break
            if not ready:
                raise Timeout(
                    f"spawn: ranks {sorted(open_ranks.values())} of {self.size} had not returned by the timeout"
                )
            for pipe in ready:
                outcomes.append(self.outcome(open_ranks.pop(pipe)))
            if any(outcome.error is not None and not outcome.is_consequence for outcome in outcomes):
                break
            if any(outcome.error for outcome in outcomes):  # the cause may be on its way
                grace = time.monotonic() + _GRACE_S
                deadline = grace if deadline is None else min(deadline, grace)
        return outcomes

    def end(self) -> None:
        """Ends the processes that still run, and removes their files."""
        for process in self.processes:
            process.terminate()
        limit = time.monotonic() + _GRACE_S
        for process in self.processes:
            process.join(max(0.0, limit - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()
            process.close()
        for pipe in self.pipes:
            pipe.close()
        self.store = None

    def join(self) -> None:
        """Lets ranks that have returned end by themselves."""
        limit = time.monotonic() + _GRACE_S
        for process in self.processes:
            process.join(max(0.0, limit - time.monotonic()))


def spawn(
    fn: Callable[..., Result], nprocs: int, args: Sequence[Any] = (), *, timeout: float | None = None,
    start_method: Literal["spawn", "fork"] = "spawn",
) -> list[Result]:
    """Runs `fn(*args)` in `nprocs` processes that find each other by tutti.init(); gives what they return, by rank. ::

        def work(step):
            world = tutti.init()
            return tutti.all_reduce(world.rank * step)

        if __name__ == "__main__":
            print(tutti.spawn(work, nprocs=4, args=(10,)))       # [60, 60, 60, 60]

    The processes start afresh and import the script, so `fn` has to be a function of a module and the call belongs
    under ``if __name__ == "__main__"``; start_method="fork" does without where the script has no threads and has not
    called init() itself.

    If a rank raises, the others are ended and its error is raised here, with the rank in its notes and its traceback as
    its cause. A rank that dies is a PeerLost (.rank, .reason). With a timeout (seconds), ranks that have not returned
    by then are ended and Timeout is raised. No process is left in any case, also if the script itself is killed."""
    if nprocs < 1:
        raise InvalidArgument(f"spawn: nprocs is {nprocs}; at least one process is needed")
    if start_method not in ("spawn", "fork"):
        raise InvalidArgument(f"spawn: no start method {start_method!r}; there are spawn and fork")
    if start_method == "spawn":
        _check_importable(fn)
    with _children_are_kept() as ignores_child_end:
        return _run(_RankPool(fn, nprocs, tuple(args), start_method, ignores_child_end), timeout)


def _check_importable(fn: Callable[..., Any]) -> None:
    """Processes that start afresh import the function by its name; says so where that cannot be."""
    what = getattr(fn, "__qualname__", type(fn).__qualname__)
    if "<lambda>" in what or "<locals>" in what:
        kind = "a lambda" if "<lambda>" in what else "defined inside another function"
        raise InvalidArgument(
            f"spawn: {what} is {kind}, which the new processes cannot import; define it with def at the top level of the"
            ' script, or pass start_method="fork"'
        )
    main = sys.modules.get("__main__")
    if getattr(fn, "__module__", "") == "__main__" and not hasattr(main, "__file__"):
        raise InvalidArgument(
            f"spawn: {what} was typed in, in a notebook or at a prompt, and the new processes have no file to import it"
            ' from; put it into a module and import that, or pass start_method="fork"'
        )
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise InvalidArgument(
            "spawn: this process is one that spawn started, and it has come to the same call while it imported the script;"
            ' put the call under if __name__ == "__main__":'
        )


def _run(pool: _RankPool, timeout: float | None) -> list:
    try:
        outcomes = pool.wait(None if timeout is None else time.monotonic() + timeout)
        if all(outcome.error is None for outcome in outcomes):
            pool.join()
        return values(outcomes)
    finally:
        pool.end()
