# references.py: what each verb must give, computed by NumPy from all ranks' inputs; and inputs any rank can make.
# SPDX-License-Identifier: Apache-2.0
import zlib

import ml_dtypes
import numpy as np

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
SMALL_FLOATS = ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"]
FLOATS = [*SMALL_FLOATS, "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
DTYPES = ["bool", *INTEGERS, *FLOATS, *COMPLEX]


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, name) if name.startswith(("bfloat16", "float8")) else name)


def ops_for(name):
    ops = ["sum", "product"]
    if name in FLOATS or name in COMPLEX:
        ops += ["mean", "premul"]
    if name not in COMPLEX:
        ops += ["min", "max"]
    if name in INTEGERS or name == "bool":
        ops += ["band", "bor", "bxor"]
    return ops


def make_input(rank, shape, name, salt=""):
    """Small whole numbers, different on every rank, so that sums are exact in every type and order."""
    seed = zlib.crc32(f"{rank} {shape} {name} {salt}".encode())
    numbers = np.random.default_rng(seed).integers(0 if name.startswith("u") or name == "bool" else -2, 3, shape)
    values = (
        numbers.astype("float32").astype(dtype_of(name)) if name in SMALL_FLOATS else numbers.astype(dtype_of(name))
    )
    if name in COMPLEX:
        values += 1j * np.random.default_rng(seed + 1).integers(-2, 3, shape)
    return values


def _wide(x):
    return x.astype("float32") if x.dtype.name in SMALL_FLOATS else x


def reduced(inputs, op, factor=0.5):
    """All ranks' arrays as one; small floats are computed in float32, as the kernels do."""
    dtype = inputs[0].dtype
    wide = [_wide(x) for x in inputs]
    is_bool = dtype == np.bool_
    functions = {
        "sum": np.logical_or if is_bool else np.add,
        "product": np.logical_and if is_bool else np.multiply,
        "min": np.minimum,
        "max": np.maximum,
        "band": np.bitwise_and,
        "bor": np.bitwise_or,
        "bxor": np.bitwise_xor,
    }
    if op == "mean":
        return (sum(wide[1:], wide[0]) / np.asarray(len(wide), wide[0].dtype)).astype(dtype)
    if op == "premul":
        scaled = [x * np.asarray(factor, x.dtype) for x in wide]
        return sum(scaled[1:], scaled[0]).astype(dtype)
    result = wide[0]
    for x in wide[1:]:
        result = functions[op](result, x)
    return result.astype(dtype)


def identity(like, op):
    """What exscan gives to rank 0."""
    dtype = like.dtype
    if op in ("sum", "premul", "bor", "bxor"):
        return np.zeros_like(like)
    if op == "product":
        return np.ones_like(like)
    if op == "band":
        return ~np.zeros_like(like)
    if dtype == np.bool_:
        return np.full_like(like, op == "min")
    if np.issubdtype(dtype, np.integer):
        info = np.iinfo(dtype)
        return np.full_like(like, info.max if op == "min" else info.min)
    return np.full_like(like, np.inf if op == "min" else -np.inf)


def joined(inputs, axis):
    return np.stack(inputs) if axis is None else np.concatenate(inputs, axis)


def part(x, rank, size, axis, sizes=None):
    """A rank's part of an array that is split."""
    if axis is None:
        return x[rank]
    sizes = sizes or [x.shape[axis] // size] * size
    begin = sum(sizes[:rank])
    return np.take(x, range(begin, begin + sizes[rank]), axis)


def exchanged(inputs, rank, size, split_axis, concat_axis, sizes_of=None):
    """all_to_all: what this rank gets; `sizes_of(source)` says how a rank splits."""
    parts = [part(x, rank, size, split_axis, sizes_of and sizes_of(source)) for source, x in enumerate(inputs)]
    return np.concatenate(parts, concat_axis)


def assert_equal(actual, expected):
    """Same dtype, shape and values; NaN equals NaN."""
    assert isinstance(actual, np.ndarray) and actual.dtype == expected.dtype and actual.shape == expected.shape, (
        f"{type(actual).__name__} {getattr(actual, 'dtype', None)} {getattr(actual, 'shape', None)}, "
        f"not {expected.dtype} {expected.shape}"
    )
    np.testing.assert_array_equal(_wide(actual), _wide(expected))
