# _order.py: whether a tape watches, and one order of backward for all ranks.
# SPDX-License-Identifier: Apache-2.0
"""Gradients flow back through calls that are collective again, so all ranks must come to them in the same order. Tapes
go back in an order that depends on how results are used, which may differ from rank to rank. Therefore recorded
calls form a chain: each takes a place, a scalar that the recorded call before it passed on, and a tape that goes
backwards comes to a call only after those behind it in the chain. That also brings backward to calls whose own
result was not used, if that of a later one was: they get a gradient of zeros, as they must where other ranks do use
theirs."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

# There is no public way to ask whether a tensor is being watched.
try:
    from tensorflow.python.eager import record as _record
except ImportError:  # its name before 2.13
    from tensorflow.python.eager import tape as _record


def is_watched(x: tf.Tensor) -> bool:
    """Whether a tf.GradientTape will ask for the gradient of what is made of x now."""
    return _record.should_record_backprop([x])


def anything_is_recorded() -> bool:
    """Whether there is a tape or a tf.autodiff.ForwardAccumulator at all."""
    return _record.could_possibly_record()


class _Place:
    def __init__(self, given: tf.Tensor):
        self.given = given
        self.passed_on: tf.Tensor | None = None


_eager = threading.local()


def _holder() -> Any:
    """Where the end of the chain is kept: one chain per graph, which tensors do not leave; one per thread outside."""
    return _eager if tf.executing_eagerly() else tf.compat.v1.get_default_graph()


@contextlib.contextmanager
def next_place(*, takes_part: bool) -> Iterator[_Place]:
    """A place at the end of the chain; or, for a call that will not go backwards, one apart from it."""
    holder = _holder()
    end = getattr(holder, "_tutti_place", None) if takes_part else None
    place = _Place(tf.zeros([]) if end is None else end)
    yield place
    if takes_part:
        holder._tutti_place = place.passed_on
