# timeline.py: what happened when in one step: backward, and each bucket beside it.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import dataclasses
import time


@dataclasses.dataclass(slots=True)
class Passage:
    """One bucket's way: seconds since the step's first gradient. `finished` is when this rank saw that it had ended:
    at one of the next gradients, or when backward was over."""

    bucket: int
    nbytes: int
    started: float
    finished: float = float("nan")

    @property
    def is_finished(self) -> bool:
        return self.finished == self.finished


@dataclasses.dataclass(slots=True)
class Timeline:
    """The last step of a DataParallel.

    computed_at: when backward had computed its last gradient; whatever started before overlaps with it.
    waited: seconds in which this rank did nothing but wait for the others' data; `waited_in_all` sums them up over
    steps.
    """

    passages: list[Passage] = dataclasses.field(default_factory=list)
    computed_at: float = 0.0
    waited: float = 0.0
    waited_in_all: float = 0.0
    steps: int = 0
    _begin: float = 0.0

    def begin(self) -> None:
        self._begin = time.perf_counter()
        self.passages.clear()

    def _now(self) -> float:
        return time.perf_counter() - self._begin

    def started(self, bucket: int, nbytes: int) -> None:
        self.passages.append(Passage(bucket, nbytes, self._now()))

    def computed(self) -> None:
        self.computed_at = self._now()

    def finished(self, bucket: int) -> None:
        for passage in self.passages:
            if passage.bucket == bucket and not passage.is_finished:
                passage.finished = self._now()

    def end(self) -> None:
        self.waited = self._now() - self.computed_at
        self.waited_in_all += self.waited
        self.steps += 1

    @property
    def overlapped_bytes(self) -> int:
        """How much was on its way before backward ended."""
        return sum(p.nbytes for p in self.passages if p.started < self.computed_at)

    @property
    def hidden_bytes(self) -> int:
        """How much had arrived before backward ended: communication that nobody had to wait for."""
        return sum(p.nbytes for p in self.passages if p.finished < self.computed_at)

    def __str__(self) -> str:
        lines = [f"backward: {self.computed_at * 1e3:.2f} ms, then waited {self.waited * 1e3:.2f} ms"]
        for p in self.passages:
            under = "" if p.started >= self.computed_at else ", begun under backward"
            under = ", under backward" if p.finished < self.computed_at else under
            span = f"{p.started * 1e3:.2f} to {p.finished * 1e3:.2f} ms"
            lines.append(f"  bucket {p.bucket}: {p.nbytes / 2**20:.2f} MiB, {span}{under}")
        return "\n".join(lines)
