# parallel_layers.py: linear, embedding and cross entropy over split weights, the same formula in every framework.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

from .. import _native
from .._arrays.operations import array_ops_of
from .._calls.verbs import all_reduce
from .._errors import InvalidArgument
from ..model_parallel import Split, _copy, _gather, _reduce, _scatter, members_of


def linear(
    x: Any, weight: Any, bias: Any = None, *, dim: int, whole_input: bool = True, whole_output: bool = True,
    total: int | None = None, group: Any = None,
) -> Any:
    """x · weightᵀ + bias, where each rank holds a part of `weight` (out × in, as torch.nn.Linear has it).

    dim=1, columns: each rank has some of the outputs: weight[outputs of this rank, :], bias[outputs of this rank].
    dim=0, rows: each rank has some of the inputs: weight[:, inputs of this rank], and the whole bias.

    whole_input=False: x is this rank's part already (rows). whole_output=False: y stays split (columns). A columns
    layer followed by a rows layer needs neither, and one sum over the ranks in all.
    total: the number of outputs (columns): spares asking for it, and has to be given under a compiler where the ranks
        do not divide it.
    """
    members = members_of(group)
    ops = array_ops_of(x, "model_parallel.linear")
    if dim in (1, -1):
        part = _plus_bias(ops, ops.linear(_copy(x, group=members), weight), weight, bias)
        return _gather(part, -1, total=total, group=members) if whole_output else part
    if dim != 0:
        raise InvalidArgument(f"model_parallel.linear: dim={dim} is neither 0 (rows) nor 1 or −1 (columns)")
    part = _scatter(x, -1, group=members) if whole_input else x
    whole = _reduce(ops.linear(part, weight), group=members)
    return _plus_bias(ops, whole, weight, bias)


def _plus_bias(ops: Any, y: Any, weight: Any, bias: Any) -> Any:
    """Under torch.autocast the product has a smaller dtype than the weight; the bias follows it, as in nn.Linear."""
    if bias is None:
        return y
    return y + (bias if y.dtype == weight.dtype else ops.cast(bias, y))


def embedding(indices: Any, table: Any, *, dim: int = 0, total: int | None = None, group: Any = None) -> Any:
    """The rows of a table at these indices, where each rank holds a part of the table.

    dim=0: each rank has some of the rows (the vocabulary); what it does not have counts as 0, and the ranks' finds are
    summed. dim=1: each rank has some of the columns; its finds are joined with the others'.
    total: the number of rows or columns in all, if the ranks do not divide it."""
    members = members_of(group)
    ops = array_ops_of(table, "model_parallel.embedding")
    if dim in (1, -1):
        return _gather(ops.rows(table, indices), -1, total=total, group=members)
    if dim != 0:
        raise InvalidArgument(f"model_parallel.embedding: dim={dim} is neither 0 (rows) nor 1 or −1 (columns)")
    begin, length = own_range(int(table.shape[0]), total, members, "embedding")
    mask = (indices >= begin) & (indices < begin + length)
    found = ops.rows(table, ops.clip(indices - begin, 0, max(length - 1, 0)))
    return _reduce(found * ops.cast(mask, found)[..., None], group=members)


def cross_entropy(
    logits: Any, targets: Any, *, classes: int | None = None, ignore: int = -100, reduction: str = "mean",
    group: Any = None,
) -> Any:
    """The cross entropy of logits whose last axis, the classes, is split over the ranks; `targets` are whole.

    No rank ever holds all logits: a maximum and two sums per row are all that travels. classes: their number in all, if
    the ranks do not divide it. ignore: targets that do not count. reduction: "mean" over those that count, "sum" or
    "none". The result and its gradient are those of the whole logits."""
    if reduction not in ("mean", "sum", "none"):
        raise InvalidArgument(f'model_parallel.cross_entropy: reduction="{reduction}" is none of mean, sum, none')
    members = members_of(group)
    ops = array_ops_of(logits, "model_parallel.cross_entropy")
    begin, length = own_range(int(logits.shape[-1]), classes, members, "cross_entropy")
    largest = all_reduce(ops.detach(ops.largest(logits)), op="max", group=members)
    shifted = logits - largest[..., None]
    total = _reduce(ops.sum(ops.exp(shifted), -1), group=members)
    mine = (targets >= begin) & (targets < begin + length)
    picked = ops.pick(shifted, ops.clip(targets - begin, 0, max(length - 1, 0)))
    picked = _reduce(ops.where(mine, picked, 0.0), group=members)
    counts = targets != ignore
    losses = ops.where(counts, ops.log(total) - picked, 0.0)
    if reduction == "none":
        return losses
    return ops.sum(losses) / (ops.sum(ops.cast(counts, losses)) if reduction == "mean" else 1)


_known_even: set[tuple[int, int]] = set()


def _require_even(length: int, members: Any, what: str) -> None:
    """Checks once that all ranks have parts of the same length: uneven parts would be misinterpreted."""
    import numpy as np

    if (members.id, length) in _known_even:
        return
    most, least = _native.apply(
        _native.Call("all_reduce", op="max"), np.array([length, -length], np.int64), None, members, False, None
    )
    if most != -least:
        raise InvalidArgument(
            f"model_parallel.{what}: ranks hold {-least} to {most} along the split axis; say how many there are in all"
        )
    _known_even.add((members.id, length))


def own_range(length: int, total: int | None, members: Any, what: str) -> tuple[int, int]:
    """Where this rank's part begins, and its length."""
    if total is None:
        _require_even(length, members, what)
        total = length * members.size
    split = Split(total, members)
    if split.length != length:
        raise InvalidArgument(
            f"model_parallel.{what}: {total} over {members.size} ranks gives this {split.length}, but it has {length}"
        )
    if total < members.size:
        raise InvalidArgument(f"model_parallel.{what}: {total} cannot be split over {members.size} ranks; use fewer")
    return split.begin, length


for _function in (linear, embedding, cross_entropy):
    _function.autograph_info__ = {}  # inside tf.function: TensorFlow is to call it as it is, not to rewrite it
