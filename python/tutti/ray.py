# ray.py: ranks as actors of a Ray cluster.
# SPDX-License-Identifier: Apache-2.0
"""A function as the ranks of a job on a Ray cluster::

    def work(step):
        world = tutti.init()
        return tutti.all_reduce(world.rank * step)

    ray.init()
    print(tutti.ray.run(work, ranks=4, args=(10,)))       # [60, 60, 60, 60]

Each rank is an actor, all of them in one placement group, so that the job starts when there is room for all of it. An error of a rank
ends the others and is raised here, with the rank's traceback and the end of what it printed; an actor that dies is a PeerLost."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from ._errors import InvalidArgument, Timeout, Unsupported
from ._process import placed
from ._process.outcomes import RankResult

__all__ = ["RankResult", "run"]


def run(
    fn: Callable[..., Any], ranks: int, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, *,
    resources: Mapping[str, float] | None = None, strategy: Literal["PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD"] = "PACK",
    timeout: float | None = None, output: bool = True, results: Literal["values", "all"] = "values",
) -> list[Any]:
    """Runs `fn(*args, **kwargs)` as `ranks` ranks and gives what they return, by rank.

    resources: what each rank takes, one CPU if not said: ``{"CPU": 2, "GPU": 1}``; strategy: of Ray's placement group. timeout
    (seconds) is for all of it, waiting for room included. With output the lines that the ranks printed are shown here, as
    ``[host:rank] line``, when all have ended (Ray shows them as they come, too, if its ``log_to_driver`` is on).
    results="all" gives a RankResult per rank, with its value, error, host and log, and raises for none of them.
    """
    if ranks < 1:
        raise InvalidArgument(f"tutti.ray.run: ranks is {ranks}; at least one is needed")
    job = _Job(_ray(), ranks, dict(resources or {"CPU": 1}), strategy, timeout)
    try:
        found = job.run(placed.pack(fn, args, kwargs))
    finally:
        job.end()
    return placed.delivered(found, output, results)


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise Unsupported("tutti.ray needs Ray: python -m pip install ray") from error
    if not ray.is_initialized():
        ray.init()
    return ray


class _Rank:
    """The actor."""

    def where(self, towards: str = "") -> placed.Where:
        return placed.where(towards)

    def free_port(self, address: str) -> int:
        return placed.free_port(address)

    def run(self, call: bytes, environment: dict[str, str]) -> bytes:
        return placed.run_rank(call, environment)


class _Job:
    def __init__(self, ray: Any, ranks: int, resources: dict[str, float], strategy: str, timeout: float | None) -> None:
        self._ray, self._ranks, self._resources, self._timeout = ray, ranks, resources, timeout
        self._group = ray.util.placement_group([resources] * ranks, strategy=strategy)
        self._actors: list[Any] = []

    def run(self, call: bytes) -> list[RankResult]:
        ray = self._ray
        ready, _ = ray.wait([self._group.ready()], timeout=self._timeout)
        if not ready:
            raise Timeout(
                f"tutti.ray.run: there is no room for {self._ranks} ranks with {self._resources} each after {self._timeout} s; the "
                f"cluster has {ray.available_resources()} left"
            )
        self._actors = [self._actor(ray, bundle) for bundle in range(self._ranks)]
        places = ray.get([actor.where.remote(ray.util.get_node_ip_address()) for actor in self._actors], timeout=self._timeout)
        order, places = placed.arranged(places)  # bundles are in no order
        self._actors = [self._actors[index] for index in order]
        port = ray.get(self._actors[0].free_port.remote(places[0].address), timeout=self._timeout)
        environments = placed.environments(places, port)
        running = {actor.run.remote(call, environment): rank
                   for rank, (actor, environment) in enumerate(zip(self._actors, environments))}
        return self._collect(running, places)

    def _actor(self, ray: Any, bundle: int) -> Any:
        strategy = ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy(self._group, placement_group_bundle_index=bundle)
        named = {name: amount for name, amount in self._resources.items() if name not in ("CPU", "GPU")}
        options = {"num_cpus": self._resources.get("CPU", 0), "num_gpus": self._resources.get("GPU", 0), "resources": named,
                   "scheduling_strategy": strategy, "max_restarts": 0, "max_concurrency": 1}
        return ray.remote(_Rank).options(**options).remote()

    def _collect(self, running: dict[Any, int], places: list[placed.Where]) -> list[RankResult]:
        """Until all have answered. Ranks that lose another one hear of it by themselves."""
        ray, found = self._ray, []
        while running:
            done, _ = ray.wait(list(running), timeout=self._timeout)
            if not done:
                raise Timeout(f"tutti.ray.run: ranks {sorted(running.values())} of {self._ranks} had not returned after {self._timeout} s")
            rank = running.pop(done[0])
            try:
                found.append(placed.read(ray.get(done[0])))
            except Exception as error:  # the actor's process is gone, or Ray's way to it
                found.append(placed.lost(rank, places[rank], f"its actor ended: {str(error).strip().splitlines()[0]}"))
        return sorted(found, key=lambda result: result.rank)

    def end(self) -> None:
        for actor in self._actors:
            self._ray.kill(actor)
        self._ray.util.remove_placement_group(self._group)
