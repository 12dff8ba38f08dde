# _tie.py: a result that a rank does not use takes part in its backward pass all the same.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any


def tie(loss: Any, *results: Any) -> Any:
    """``loss``, unchanged, but with a zero gradient into each of ``results`` (arrays or nests of them).

    Backward is collective: a rank that does not use the result of a differentiated call must still take part in its backward
    pass, or the others wait for it.

    >>> y = tutti.all_reduce(x)
    >>> loss = tutti.tie(loss_without_y, y) if rank else loss_with(y)
    """
    from . import adapters
    from ._nest import flatten

    leaves = [leaf for result in results for leaf in flatten(result, "tie").leaves]
    if adapters.kind_of(loss) == "torch":
        return adapters.get("torch").tie(loss, *leaves)
    for leaf in leaves:
        # Zero times an infinity would be NaN: elements are dropped, not multiplied.
        loss = loss + (leaf.reshape(-1)[:0].sum() if hasattr(leaf, "reshape") else _empty_sum(leaf))
    return loss


def _empty_sum(leaf: Any) -> Any:
    import tensorflow as tf

    return tf.reduce_sum(tf.reshape(leaf, [-1])[:0])
