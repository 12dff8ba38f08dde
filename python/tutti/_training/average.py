# average.py: data parallelism as one pure call.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

from .. import _native
from .._arrays.operations import array_ops_of
from .._arrays.tree import flatten
from .._calls.dispatch import reject
from .._errors import InvalidArgument

Tree = TypeVar("Tree")

_SUM = _native.Call("all_reduce")
_MEAN = _native.Call("all_reduce", op="mean")


def average(
    tree: Tree, weight: object = None, *, group: _native.Group | None = None, timeout: _native.Timeout = None
) -> Tree:
    """The mean over all ranks of a tree of arrays (gradients, losses, statistics), in any framework::

        grads = tutti.average(grads)                         # every rank counts alike
        grads = tutti.average(grads, weight=len(batch))      # every sample counts alike

    weight: how much this rank's arrays count, such as the number of samples they are the mean of. The result is the
        mean over all samples of all ranks, however unequal the batches. A rank without samples says 0 and still takes
        part; what its arrays hold does not matter then.
    group: the ranks to average over; the world unless given.

    The arrays are not changed. Small ones travel together. Sparse tensors of torch stay sparse; TensorFlow's
    IndexedSlices become dense. Raises InvalidArgument for integers, whose mean is none of
    them, and where all weights are 0.
    """
    if weight is None:
        result = _native.average(tree, group, timeout)  # None: unusual, or wrong
        if result is not None:
            return result
    return _averaged(tree, weight, group, timeout)


def _averaged(tree: Any, weight: Any, group: Any, timeout: Any) -> Any:
    try:
        flat, own = _checked(tree, weight)
    except (InvalidArgument, TypeError, ValueError) as error:
        reject("all_reduce", group, error)
    if not flat.leaves:
        return tree
    if own is None:
        return _reduced(_MEAN, flat.rebuild(flat.leaves), flat, group, timeout)
    return _weighted(flat, own, group, timeout)


def _checked(tree: Any, weight: Any) -> tuple[Any, Any]:
    """The leaves, and the weight as an array of their kind; None without one."""
    flat = flatten(tree, "average")
    if any(type(leaf).__name__ == "IndexedSlices" for leaf in flat.leaves):  # TensorFlow's, as an embedding's gradient
        from ..tensorflow.training import dense

        tree = flat.rebuild([dense(leaf) for leaf in flat.leaves])
        flat = flatten(tree, "average")
    for leaf, path in zip(flat.leaves, flat.paths, strict=True):
        if not array_ops_of(leaf, "average").is_floating(leaf):
            place = f" at {path}" if path else ""
            raise InvalidArgument(f"average: the array{place} holds integers, and their mean is none; cast it")
    return flat, None if weight is None or not flat.leaves else _checked_weight(flat, weight)


average.autograph_info__ = {}  # type: ignore[attr-defined]  # inside tf.function: TensorFlow is to call it as it is, not to rewrite it


def _checked_weight(flat: Any, weight: Any) -> Any:
    own = array_ops_of(flat.leaves[0], "average").scalar(weight)
    if len(own.shape) != 0:
        raise InvalidArgument(f"average: the weight is one number, not an array of shape {tuple(own.shape)}")
    own_number = _number(own)
    if own_number is not None and not own_number >= 0:
        raise InvalidArgument(f"average: a weight of {own_number} is less than none")
    return own


def _weighted(flat: Any, own: Any, group: Any, timeout: float | None) -> Any:
    ops = array_ops_of(flat.leaves[0], "average")
    # The total comes first, so that the factor is at most 1: weight × gradient could leave the range of float16.
    total = _native.apply(_SUM, own, None, group, False, timeout)
    if _number(total) == 0:
        raise InvalidArgument("average: all ranks say weight=0: there is nothing to average")
    scaled = [ops.weighted(leaf, own, total) for leaf in flat.leaves]
    flat = dataclasses.replace(flat, leaves=scaled)
    return _reduced(_SUM, flat.rebuild(scaled), flat, group, timeout)


def _reduced(call: Any, tree: Any, flat: Any, group: Any, timeout: float | None) -> Any:
    if any(getattr(leaf, "is_sparse", False) is True for leaf in flat.leaves):  # torch's, as an embedding's gradient
        from ..torch.sparse import reduce_leaves

        return reduce_leaves(call, flat, group, timeout)
    return _native.apply(call, tree, None, group, False, timeout)


def _number(value: Any) -> float | None:
    """None under a compiler, where it is not known yet."""
    try:
        return value.__float__()  # not float(value): TensorFlow's AutoGraph would make an operation of it
    except Exception:
        return None
