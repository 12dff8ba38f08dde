# _kinds.py: the framework of the root's array in a broadcast or scatter, for ranks that pass None.
# SPDX-License-Identifier: Apache-2.0
"""Shape and dtype come with the data, and so does a number for the framework: a rank that passed nothing gets the kind
of array that the root sent. The numbers travel between ranks: never renumber them."""
from __future__ import annotations

import functools
from typing import Any

from . import adapters
from ._errors import Unsupported

_NUMBERS = {"numpy": 0, "torch": 1, "jax": 2, "tensorflow": 3}
_NAMES = {number: name for name, number in _NUMBERS.items()}


@functools.lru_cache(maxsize=256)
def with_kind(call: Any, kind: str | None) -> Any:
    """The call, as the root makes it with an array of this kind (others count as NumPy's)."""
    return call.replace(kind=_NUMBERS.get(kind, 0))


def told(array: Any, verb: str) -> Any:
    """What arrived on a rank that passed None, as an array of the root's framework."""
    name = _NAMES.get(array.kind, "numpy")
    try:
        adapter = adapters.get(name)
    except ImportError as error:
        raise Unsupported(
            f"{verb}: the root sent an array of {name}, which this rank cannot import ({error}); pass an array, such as"
            " numpy.empty(…), to get its kind, or install it here"
        ) from error
    return adapter.from_array(array, None)
