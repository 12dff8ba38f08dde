# _empty.py: arrays in memory that the ranks of this host read without a copy.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import importlib
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from . import adapters
from ._dispatch import group_or_world


def empty(shape: int | Sequence[int], dtype: str = "float32", *, like: Any = None, group: Any = None) -> Any:
    """An array whose elements are not initialised, in memory that neighbours reach: collectives on it copy nothing between.

    ``like`` says of which kind: the module (``np``, ``torch``) or an array; NumPy if not given.

    >>> buffer = tutti.empty((1024,), "float32", like=np)
    """
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    if like is None:
        kind = "numpy"
    elif isinstance(like, ModuleType):
        kind = like.__name__.partition(".")[0]
    else:
        kind = adapters.kind_of(like)
    adapter = importlib.import_module(f".adapters.{kind}", __package__)
    return adapter.empty(shape, str(dtype), group_or_world(group))
