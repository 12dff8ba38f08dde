# tie.py: makes a result that a rank does not use take part in its backward pass.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any, TypeVar

Loss = TypeVar("Loss")


def tie(loss: Loss, *results: object) -> Loss:
    """``loss``, unchanged, but with a zero gradient into each of ``results`` (arrays or trees of them).

    Backward is collective: a rank that does not use the result of a differentiated call must still take part in its backward
    pass, or the others wait for it.

    Example::

        y = tutti.all_reduce(x)
        loss = tutti.tie(loss_without_y, y) if rank else loss_with(y)
    """
    return _tied(loss, results)


def _tied(loss: Any, results: tuple[Any, ...]) -> Any:
    from .. import adapters
    from .._arrays.tree import flatten

    adapter = adapters.get(adapters.kind_of(loss))
    for result in results:
        for leaf in flatten(result, "tie").leaves:
            if hasattr(adapter, "tie"):
                loss = adapter.tie(loss, leaf)
            else:  # zero times an infinity would be NaN: elements are dropped, not multiplied
                loss = loss + leaf.reshape(-1)[:0].sum().astype(loss.dtype)
    return loss
