# kinds.py: the framework of an array that another rank sent, for ranks that pass none of their own.
# SPDX-License-Identifier: Apache-2.0
"""Shape and dtype come with the data, and so does a number for the framework: a rank that passed nothing gets the kind
of array that was sent. The numbers travel between ranks: never renumber them."""
from __future__ import annotations

import functools
from typing import Any

from .. import adapters
from .._errors import Unsupported

_NUMBERS = {"numpy": 0, "torch": 1, "jax": 2, "tensorflow": 3}
OBJECT = 4  # of messages: a Python object, encoded
TREE = 5  # … the number of a tree's structure, and its leaves, encoded
NUMBER, SCALAR = 6, 7  # … a number of Python's, and of NumPy's
_NAMES = {number: name for name, number in _NUMBERS.items()}


@functools.lru_cache(maxsize=256)
def with_kind(call: Any, kind: str | None) -> Any:
    """The call, as the root makes it with an array of this kind (others count as NumPy's)."""
    return call.replace(kind=number_of(kind))


def number_of(kind: str | None) -> int:
    """The number of a kind of array (others count as NumPy's)."""
    return _NUMBERS.get(kind or "", 0)


def _adapter_named(array: Any, verb: str, who: str) -> Any:
    name = _NAMES.get(array.kind, "numpy")
    try:
        return adapters.get(name)
    except ImportError as error:
        raise Unsupported(
            f"{verb}: {who} sent an array of {name}, which this rank cannot import ({error}); pass an array, such as"
            " numpy.empty(…), to get its kind, or install it here"
        ) from error


def told(array: Any, verb: str) -> Any:
    """What arrived on a rank that passed None, as an array of the root's framework."""
    return _adapter_named(array, verb, "the root").from_array(array, None)


def made_as(array: Any, like: Any) -> Any:
    """A message that came, as an array of its sender's framework, or of like's."""
    if like is None and array.kind in (NUMBER, SCALAR):
        return array.numpy().item() if array.kind == NUMBER else array.numpy()[()]
    if like is None:
        return _adapter_named(array, "recv", f"rank {array.source}").from_array(array, None)
    return adapters.adapter_of(like, "like", "recv").from_array(array, like)
