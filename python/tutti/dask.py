# dask.py: ranks in the workers of a Dask cluster.
# SPDX-License-Identifier: Apache-2.0
"""A function as the ranks of a job on a Dask cluster, one rank per worker::

    def work(step):
        world = tutti.init()
        return tutti.all_reduce(world.rank * step)

    client = distributed.Client("scheduler:8786")
    print(tutti.dask.run(client, work, args=(10,)))

The ranks run beside the workers' tasks, in a thread of each worker, all at once: a scheduler that started some of them later would
have the others wait, and one that started a rank again would have it meet nobody. An error of a rank is raised here, with its
traceback and the end of what it printed; a worker that dies is a PeerLost."""
from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from ._errors import InvalidArgument
from ._process import placed
from ._process.outcomes import RankResult

__all__ = ["RankResult", "run"]


def run(
    client: Any, fn: Callable[..., Any], ranks: int | None = None, args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None, *, workers: Sequence[str] | None = None, timeout: float | None = None,
    output: bool = True, results: Literal["values", "all"] = "values",
) -> list[Any]:
    """Runs `fn(*args, **kwargs)` as one rank in each of the workers and gives what the ranks return, by rank.

    ranks: how many of the workers take part, all if not said; workers: which, by address. A rank that has not returned after `timeout`
    seconds counts as failed. With output the lines that the ranks printed are shown here, as ``[host:rank] line``. results="all" gives
    a RankResult per rank, with its value, error, host and log, and raises for none of them."""
    chosen = _choose(client, ranks, workers)
    return placed.delivered(_run(client, chosen, placed.pack(fn, args, kwargs), timeout), output, results)


def _choose(client: Any, ranks: int | None, workers: Sequence[str] | None) -> list[str]:
    known = list(client.scheduler_info(n_workers=-1)["workers"])
    if unknown := [worker for worker in workers or () if worker not in known]:
        raise InvalidArgument(f"tutti.dask.run: the cluster has no worker {unknown[0]}; it has {', '.join(sorted(known)) or 'none'}")
    chosen = list(workers) if workers is not None else sorted(known)
    if ranks is not None and not 1 <= ranks <= len(chosen):
        raise InvalidArgument(
            f"tutti.dask.run: {ranks} ranks need as many workers, one each, and there are {len(chosen)}; start more, or ask for fewer"
        )
    if not chosen:
        raise InvalidArgument("tutti.dask.run: the cluster has no worker")
    return chosen[: ranks or len(chosen)]


def _run(client: Any, chosen: list[str], call: bytes, timeout: float | None) -> list[RankResult]:
    towards = client.scheduler.address.split("://")[-1].rsplit(":", 1)[0].strip("[]")
    places = client.run(placed.where, towards, workers=chosen)
    order, of_ranks = placed.arranged([places[worker] for worker in chosen])
    chosen = [chosen[index] for index in order]
    port = client.run(placed.free_port, of_ranks[0].address, workers=chosen[:1])[chosen[0]]
    environments = dict(zip(chosen, placed.environments(of_ranks, port)))
    answers = client.run(_run_here, call, environments, timeout, workers=chosen, on_error="return")
    found = []
    for rank, (worker, place) in enumerate(zip(chosen, of_ranks)):
        answer = answers.get(worker)
        if isinstance(answer, bytes):
            found.append(placed.read(answer))
        else:
            found.append(placed.lost(rank, place, f"its worker {worker} ended: {answer}"))
    return found


async def _run_here(call: bytes, environments: dict[str, dict[str, str]], timeout: float | None, dask_worker: Any) -> bytes:
    """In the worker, whose event loop has to go on meanwhile."""
    environment = environments[dask_worker.address]
    rank = asyncio.get_running_loop().run_in_executor(None, placed.run_rank, call, environment)
    try:
        return await asyncio.wait_for(asyncio.shield(rank), timeout)
    except asyncio.TimeoutError:
        return placed.timed_out(environment, timeout or 0.0)
