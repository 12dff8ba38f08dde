# dtypes.py: the names of element types: ours, and those of NumPy, ml_dtypes and the frameworks where they differ.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

NAMES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32", "float64",
    "complex64", "complex128", "float8_e4m3", "float8_e5m2",
)  # fmt: skip
OUR_NAMES = {"float8_e4m3fn": "float8_e4m3", "half": "float16"}  # get(name, name): ours, for a framework's
SMALL_FLOATS = ("bfloat16", "float8_e4m3fn", "float8_e5m2")  # NumPy has them from ml_dtypes only


def common_name(name: str) -> str:
    """The name that ml_dtypes, torch and JAX have for an element type that we call `name`."""
    return "float8_e4m3fn" if name == "float8_e4m3" else name


def numpy_dtype(name: str) -> np.dtype:
    """NumPy's element type of one of our names, or of the common ones."""
    import numpy as np

    name = common_name(name)
    if name not in SMALL_FLOATS:
        return np.dtype(name)
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, name))
