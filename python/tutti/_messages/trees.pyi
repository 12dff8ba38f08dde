# trees.pyi: the types of send_object, recv_object and what messages of trees need.
# SPDX-License-Identifier: Apache-2.0
from typing import Any, Literal, overload

import numpy as np

from .._native import Array, Group, Timeout
from .._calls.works import Work

def encoded_object(value: object, verb: str) -> tuple[np.ndarray[Any, Any], int]: ...
def encoded_tree(tree: object, verb: str) -> tuple[np.ndarray[Any, Any], int]: ...
def decoded(array: Array, like: Any) -> Any: ...
def fill(tree: Any, array: Array) -> Any: ...
@overload
def send_object(
    value: object, dst: int, tag: int = 0, *,
    allow_pickle: bool = False, group: Group | None = None, async_op: Literal[False] = False, timeout: Timeout = None,
) -> None: ...
@overload
def send_object(
    value: object, dst: int, tag: int = 0, *,
    allow_pickle: bool = False, group: Group | None = None, async_op: Literal[True], timeout: Timeout = None,
) -> Work[None]: ...
@overload
def send_object(
    value: object, dst: int, tag: int = 0, *,
    allow_pickle: bool = False, group: Group | None = None, async_op: bool, timeout: Timeout = None,
) -> None | Work[None]: ...
@overload
def recv_object(
    src: int | None = None, tag: int | None = 0, *,
    allow_pickle: bool = False, group: Group | None = None, async_op: Literal[False] = False, timeout: Timeout = None,
) -> Any: ...
@overload
def recv_object(
    src: int | None = None, tag: int | None = 0, *,
    allow_pickle: bool = False, group: Group | None = None, async_op: Literal[True], timeout: Timeout = None,
) -> Work[Any]: ...
@overload
def recv_object(
    src: int | None = None, tag: int | None = 0, *,
    allow_pickle: bool = False, group: Group | None = None, async_op: bool, timeout: Timeout = None,
) -> Any: ...
