# flat.py: several arrays in the memory of one: where each of them lies, and memory that frameworks take over.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

ALIGNMENT = 64  # bytes; the kernels of JAX and TensorFlow load whole vectors from where they expect an array to begin


def parts_of(flat: Any, shapes: Iterable[tuple[int, ...]]) -> list[Any]:
    """The parts of a flat array, which lie end to end, in these shapes."""
    parts, begin = [], 0
    for shape in shapes:
        end = begin + math.prod(shape)
        parts.append(flat[begin:end].reshape(shape))
        begin = end
    return parts


def new_aligned(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Uninitialised memory that can become an array of JAX or TensorFlow without a copy."""
    import numpy as np

    count = math.prod(shape) * dtype.itemsize
    memory = np.empty(count + ALIGNMENT, np.uint8)
    begin = -memory.ctypes.data % ALIGNMENT
    return memory[begin : begin + count].view(dtype).reshape(shape)
