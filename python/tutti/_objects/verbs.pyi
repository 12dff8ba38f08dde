# verbs.pyi: the types of the verbs for Python objects. A test compares their parameters with those of verbs.py.
# SPDX-License-Identifier: Apache-2.0
#
# `async_op` decides whether a verb gives its result or a Work. T is an array of any framework, a number, or a tree of arrays: what
# goes in comes out.
from collections.abc import Sequence
from typing import Literal, TypeVar, overload

from .._native import Group, Timeout
from .._calls.works import Work

T = TypeVar("T")

@overload
def broadcast_object(
    value: T | None = None, root: int = 0, *,
    allow_pickle: bool = False, group: Group | None = None, async_op: Literal[False] = False, timeout: Timeout = None,
) -> T: ...
@overload
def broadcast_object(
    value: T | None = None, root: int = 0, *,
    allow_pickle: bool = False, group: Group | None = None, async_op: Literal[True], timeout: Timeout = None,
) -> Work[T]: ...
@overload
def broadcast_object(
    value: T | None = None, root: int = 0, *,
    allow_pickle: bool = False, group: Group | None = None, async_op: bool, timeout: Timeout = None,
) -> T | Work[T]: ...
@overload
def all_gather_object(
    value: T, *,
    allow_pickle: bool = False, group: Group | None = None, async_op: Literal[False] = False, timeout: Timeout = None,
) -> list[T]: ...
@overload
def all_gather_object(
    value: T, *,
    allow_pickle: bool = False, group: Group | None = None, async_op: Literal[True], timeout: Timeout = None,
) -> Work[list[T]]: ...
@overload
def all_gather_object(
    value: T, *,
    allow_pickle: bool = False, group: Group | None = None, async_op: bool, timeout: Timeout = None,
) -> list[T] | Work[list[T]]: ...
@overload
def gather_object(
    value: T, root: int = 0, *,
    allow_pickle: bool = False, group: Group | None = None, async_op: Literal[False] = False, timeout: Timeout = None,
) -> list[T] | None: ...
@overload
def gather_object(
    value: T, root: int = 0, *,
    allow_pickle: bool = False, group: Group | None = None, async_op: Literal[True], timeout: Timeout = None,
) -> Work[list[T] | None]: ...
@overload
def gather_object(
    value: T, root: int = 0, *,
    allow_pickle: bool = False, group: Group | None = None, async_op: bool, timeout: Timeout = None,
) -> list[T] | None | Work[list[T] | None]: ...
@overload
def scatter_object(
    values: Sequence[T] | None = None, root: int = 0, *,
    allow_pickle: bool = False, group: Group | None = None, async_op: Literal[False] = False, timeout: Timeout = None,
) -> T: ...
@overload
def scatter_object(
    values: Sequence[T] | None = None, root: int = 0, *,
    allow_pickle: bool = False, group: Group | None = None, async_op: Literal[True], timeout: Timeout = None,
) -> Work[T]: ...
@overload
def scatter_object(
    values: Sequence[T] | None = None, root: int = 0, *,
    allow_pickle: bool = False, group: Group | None = None, async_op: bool, timeout: Timeout = None,
) -> T | Work[T]: ...
