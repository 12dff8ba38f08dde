# type_names.py: names of types in the signatures of the verbs.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias, TypeVar

from .._native import Op

T = TypeVar("T")  # an array of any framework, a number, or a tree of arrays: what goes in comes out
OpName: TypeAlias = Literal["sum", "mean", "product", "min", "max", "band", "bor", "bxor"]
Reduction: TypeAlias = OpName | Op
AnyReduction: TypeAlias = Reduction | Callable[[T, T], T]  # also a function of the program's own
