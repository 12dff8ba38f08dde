# basis.py: what the steps of a life are made of: limits, marks between ranks, data that every rank can compute, guarded memory.
# SPDX-License-Identifier: Apache-2.0
import time

import numpy as np

import tutti

CALL_SECONDS = 90  # the deadline of every call; only a machine that is very busy comes near it
CHILD_SECONDS = 60  # in which a forked child must have ended


class Wrong(Exception):
    """Data or behaviour that no error announced; `rule` is the same for all of a kind."""

    def __init__(self, rule, text):
        super().__init__(text)
        self.rule = rule


class Basis:
    """Its rank sets `rank`, `size`, `folder`, `guarded`, and for each step `index` and `step`."""

    @staticmethod
    def described(error):
        return {"result": "error", "named": isinstance(error, tutti.Error), "text": f"{type(error).__name__}: {error}"}

    def mark(self, name=""):
        (self.folder / f"mark-{self.index}{name}").touch()

    def wait_for_mark(self, name=""):
        end = time.monotonic() + CALL_SECONDS + CHILD_SECONDS
        while not (self.folder / f"mark-{self.index}{name}").exists():
            if time.monotonic() > end:
                raise Wrong("the other rank never came so far", f"no mark {self.index}{name}")
            time.sleep(0.002)

    @staticmethod
    def wait_until(holds, what):
        end = time.monotonic() + CALL_SECONDS
        while not holds():
            if time.monotonic() > end:
                raise Wrong(what, f"not within {CALL_SECONDS} s")
            time.sleep(0.002)

    def has_mark(self, name):
        return (self.folder / f"mark-{self.index}{name}").exists()

    def guard(self, array):
        array.fill(-77)
        self.guarded.append(array)

    def check_guarded(self):
        for array in self.guarded:
            if not (array == -77).all():
                raise Wrong("wrong data: memory was written after the call had given it back", f"{array[array != -77][:4]}")

    # Data: every rank can compute every rank's.

    def values(self, rank, variant=0, count=None):
        count = self.step["count"] if count is None else count
        start = (self.step["seed"] + 31 * rank + 1009 * variant) % 4096
        return np.arange(start, start + count, dtype=np.float64)

    def sum_of_all(self, variant=0, ranks=None):
        return sum(self.values(rank, variant) for rank in (range(self.size) if ranks is None else ranks))

    @staticmethod
    def expect(got, wanted, what):
        got = np.asarray(got)
        if got.shape != wanted.shape or not np.array_equal(got, wanted):
            raise Wrong("wrong data", f"{what}: {got.ravel()[:4]} instead of {wanted.ravel()[:4]}")
