# seed.py: random numbers that are the same on every rank, or different on each, in all frameworks by one call.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import operator
import random
import sys
from collections.abc import Callable

import numpy as np

from .. import _native
from .._calls.dispatch import group_or_world
from .._errors import InvalidArgument
from .when_imported import when_imported

_BITS = 32  # what NumPy's global generator takes
_STEP = 0x9E3779B1  # odd: multiples of it by different ranks differ
_latest: int | None = None
_awaited: set[str] = set()  # frameworks that are seeded as soon as they are imported


def seed(seed: int, *, per_rank: bool = False, group: _native.Group | None = None) -> int:
    """Seeds Python's, NumPy's, PyTorch's and TensorFlow's random numbers; gives the number that was used on this rank,
    which is what JAX's keys are made of. ::

        tutti.seed(1234)                                       # the same numbers on every rank
        key = jax.random.key(tutti.seed(1234, per_rank=True))  # different ones on each

    seed: the same on every rank, from 0 to 2³² - 1.
    per_rank: every rank of the group gets a seed of its own; no two of them get the same.
    group: whose ranks differ, the world unless given. With ``mesh["data"]`` the ranks of one model draw the same.

    PyTorch and TensorFlow are not imported for it: what the program imports later is seeded then. Raises
    InvalidArgument for a seed out of range.

    Example::

        tutti.seed(1234, per_rank=True)
        drawn = tutti.all_gather(np.random.random(4), axis=None)
        assert len(np.unique(drawn)) == 4 * size
    """
    global _latest
    number = operator.index(seed)
    if not 0 <= number < 1 << _BITS:
        raise InvalidArgument(f"seed: {number} is not from 0 to 2**{_BITS} - 1")
    if per_rank:
        first = int(np.random.SeedSequence(number).generate_state(1)[0])
        number = (first + group_or_world(group).rank * _STEP) % (1 << _BITS)
    _latest = number
    random.seed(number)
    np.random.seed(number)
    for framework, function in _FRAMEWORKS.items():
        if framework in sys.modules:
            function()
        elif framework not in _awaited:
            _awaited.add(framework)
            when_imported(framework, function)
    return number


def _seed_torch() -> None:
    import torch

    if _latest is not None:
        torch.manual_seed(_latest)


def _seed_tensorflow() -> None:
    import tensorflow

    tensorflow.random.set_seed(_latest)


_FRAMEWORKS: dict[str, Callable[[], None]] = {"torch": _seed_torch, "tensorflow": _seed_tensorflow}
