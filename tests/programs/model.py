# model.py: what every rank gives to a call and must get from it, in NumPy.
# SPDX-License-Identifier: Apache-2.0
import functools

import numpy as np

FOLDS = {
    "sum": np.add, "product": np.multiply, "min": np.minimum, "max": np.maximum, "band": np.bitwise_and, "bor": np.bitwise_or,
    "bxor": np.bitwise_xor}
TREE = ("a", "b", "c")


def array(step, index, shape, leaf=0):
    """Small numbers, and powers of two to be multiplied, so that no order of operations rounds."""
    numbers = np.asarray(np.random.default_rng((*step["seed"], index, leaf)).integers(0, 4, size=shape))
    if step.get("op") == "product":
        numbers = np.asarray(numbers // 3 + 1)
    return np.asarray(numbers > 1) if step["dtype"] == "bool" else numbers.astype(step["dtype"])


def shape_of(step, index):
    """What the member of this index gives."""
    shape, axis, sizes = list(step["shape"]), step["axis"], step.get("sizes")
    if sizes is not None:
        extents = {"all_to_all": lambda: sum(sizes[index]), "all_gather": lambda: sizes[index], "gather": lambda: sizes[index]}
        shape[axis] = extents.get(step["do"], lambda: sum(sizes))()
    return tuple(shape)


def given(step, index):
    return array(step, index, shape_of(step, index))


def tree_given(step, index):
    rows = step["shape"][-1] if step["shape"] else 3
    return {name: array(step, index, (rows, leaf), leaf) for leaf, name in enumerate(TREE)}


def folded(op, arrays):
    return np.asarray(functools.reduce(FOLDS[op], arrays))


def part(step, whole, index):
    sizes = step.get("sizes") or [whole.shape[step["axis"]] // len(step["ranks"])] * len(step["ranks"])
    begin = sum(sizes[:index])
    return whole[(slice(None),) * step["axis"] + (slice(begin, begin + sizes[index]),)]


def exchanged(step, index):
    members = range(len(step["ranks"]))
    sizes = step.get("sizes")
    if sizes is None:
        pieces = [part(step, given(step, other), index) for other in members]
    else:
        pieces = [given(step, other)[sum(sizes[other][:index]):sum(sizes[other][:index + 1])] for other in members]
    return np.concatenate(pieces, step["concat_axis"])


def before_first(step):
    """The reduction's identity: what exscan gives to rank 0."""
    shape, dtype = step["shape"], np.dtype(step["dtype"])
    if step["op"] == "band":
        return np.invert(np.zeros(shape, dtype))
    if step["op"] not in ("min", "max"):
        return np.full(shape, 1 if step["op"] == "product" else 0, dtype)
    least, most = (-np.inf, np.inf) if dtype.kind == "f" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return np.full(shape, most if step["op"] == "min" else least, dtype)


def wanted(step, index):
    """What the member of this index must get; None: nothing."""
    kind, op, root = step["do"], step.get("op"), step.get("root")
    members = range(len(step["ranks"]))
    if kind in ("all_reduce", "prepared"):
        return folded(op, [given(step, other) for other in members])
    if kind == "reduce":
        return folded(op, [given(step, other) for other in members]) if index == root else given(step, index)
    if kind == "scan":
        return folded(op, [given(step, other) for other in members[:index + 1]])
    if kind == "exscan":
        return folded(op, [given(step, other) for other in members[:index]]) if index > 0 else before_first(step)
    if kind == "broadcast":
        return given(step, root)
    if kind == "all_gather" or kind == "gather" and index == root:
        return np.concatenate([given(step, other) for other in members], step["axis"])
    if kind == "gather":
        return given(step, index)
    if kind == "scatter":
        return part(step, given(step, root), index)
    if kind == "reduce_scatter":
        return part(step, folded(op, [given(step, other) for other in members]), index)
    if kind == "all_to_all":
        return exchanged(step, index)
    if kind == "permute":
        sources = [source for source, destination in step["pairs"] if destination == index]
        return given(step, sources[0]) if sources else np.zeros(step["shape"], step["dtype"])
    if kind == "sendrecv":
        return given(step, (index - step["distance"]) % len(members))
    if kind == "tree":
        trees = [tree_given(step, other) for other in members]
        return {name: folded(op, [tree[name] for tree in trees]) for name in TREE}
    return None


def difference(got, right):
    """How an array differs from what is right, in words; None: not at all."""
    if got.shape != right.shape or got.dtype != right.dtype:
        return f"{got.dtype}{got.shape} came where {right.dtype}{right.shape} is right"
    wrong = np.flatnonzero(np.ravel(got) != np.ravel(right))
    if wrong.size == 0:
        return None
    first = wrong[0]
    return f"{wrong.size} of {right.size} elements are wrong, the first is [{first}]: {np.ravel(got)[first]} where {np.ravel(right)[first]} is right"
