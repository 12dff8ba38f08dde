# verbs.pyi: the types of the verbs as functions. A test compares their parameters with those of verbs.py.
# SPDX-License-Identifier: Apache-2.0
#
# `async_op` decides whether a verb gives its result or a Work. T is an array of any framework, a number, or a tree of arrays: what
# goes in comes out.
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar, overload

from numpy.typing import NDArray

from .._messages.messages import Message
from .._native import Group, Op, Timeout
from .works import Work

T = TypeVar("T")
OpName = Literal["sum", "mean", "product", "min", "max", "band", "bor", "bxor"]
Reduction = OpName | Op

@overload
def all_reduce(
    x: T, op: Reduction | Callable[[T, T], T] = "sum", *,
    out: T | None = None, group: Group | None = None, async_op: Literal[False] = False, timeout: Timeout = None,
) -> T: ...
@overload
def all_reduce(
    x: T, op: Reduction | Callable[[T, T], T] = "sum", *,
    out: T | None = None, group: Group | None = None, async_op: Literal[True], timeout: Timeout = None,
) -> Work[T]: ...
@overload
def all_reduce(
    x: T, op: Reduction | Callable[[T, T], T] = "sum", *,
    out: T | None = None, group: Group | None = None, async_op: bool, timeout: Timeout = None,
) -> T | Work[T]: ...
@overload
def reduce(
    x: T, root: int = 0, op: Reduction | Callable[[T, T], T] = "sum", *,
    out: T | None = None, group: Group | None = None, async_op: Literal[False] = False, timeout: Timeout = None,
) -> T: ...
@overload
def reduce(
    x: T, root: int = 0, op: Reduction | Callable[[T, T], T] = "sum", *,
    out: T | None = None, group: Group | None = None, async_op: Literal[True], timeout: Timeout = None,
) -> Work[T]: ...
@overload
def reduce(
    x: T, root: int = 0, op: Reduction | Callable[[T, T], T] = "sum", *,
    out: T | None = None, group: Group | None = None, async_op: bool, timeout: Timeout = None,
) -> T | Work[T]: ...
@overload
def reduce_scatter(
    x: T, op: Reduction = "sum", axis: int | None = 0, *,
    sizes: Sequence[int] | None = None, out: T | None = None, group: Group | None = None,
    async_op: Literal[False] = False, timeout: Timeout = None,
) -> T: ...
@overload
def reduce_scatter(
    x: T, op: Reduction = "sum", axis: int | None = 0, *,
    sizes: Sequence[int] | None = None, out: T | None = None, group: Group | None = None,
    async_op: Literal[True], timeout: Timeout = None,
) -> Work[T]: ...
@overload
def reduce_scatter(
    x: T, op: Reduction = "sum", axis: int | None = 0, *,
    sizes: Sequence[int] | None = None, out: T | None = None, group: Group | None = None,
    async_op: bool, timeout: Timeout = None,
) -> T | Work[T]: ...
@overload
def all_to_all(
    x: T, split_axis: int = 0, concat_axis: int = 0, *,
    split_sizes: Sequence[int] | None = None, recv_sizes: Sequence[int] | None = None, out: T | None = None, group: Group | None = None,
    async_op: Literal[False] = False, timeout: Timeout = None,
) -> T: ...
@overload
def all_to_all(
    x: T, split_axis: int = 0, concat_axis: int = 0, *,
    split_sizes: Sequence[int] | None = None, recv_sizes: Sequence[int] | None = None, out: T | None = None, group: Group | None = None,
    async_op: Literal[True], timeout: Timeout = None,
) -> Work[T]: ...
@overload
def all_to_all(
    x: T, split_axis: int = 0, concat_axis: int = 0, *,
    split_sizes: Sequence[int] | None = None, recv_sizes: Sequence[int] | None = None, out: T | None = None, group: Group | None = None,
    async_op: bool, timeout: Timeout = None,
) -> T | Work[T]: ...
@overload
def scan(
    x: T, op: Reduction | Callable[[T, T], T] = "sum", *,
    out: T | None = None, group: Group | None = None, async_op: Literal[False] = False, timeout: Timeout = None,
) -> T: ...
@overload
def scan(
    x: T, op: Reduction | Callable[[T, T], T] = "sum", *,
    out: T | None = None, group: Group | None = None, async_op: Literal[True], timeout: Timeout = None,
) -> Work[T]: ...
@overload
def scan(
    x: T, op: Reduction | Callable[[T, T], T] = "sum", *,
    out: T | None = None, group: Group | None = None, async_op: bool, timeout: Timeout = None,
) -> T | Work[T]: ...
@overload
def exscan(
    x: T, op: Reduction | Callable[[T, T], T] = "sum", *,
    out: T | None = None, group: Group | None = None, async_op: Literal[False] = False, timeout: Timeout = None,
) -> T: ...
@overload
def exscan(
    x: T, op: Reduction | Callable[[T, T], T] = "sum", *,
    out: T | None = None, group: Group | None = None, async_op: Literal[True], timeout: Timeout = None,
) -> Work[T]: ...
@overload
def exscan(
    x: T, op: Reduction | Callable[[T, T], T] = "sum", *,
    out: T | None = None, group: Group | None = None, async_op: bool, timeout: Timeout = None,
) -> T | Work[T]: ...
@overload
def permute(
    x: T, pairs: Sequence[tuple[int, int]], *,
    out: T | None = None, group: Group | None = None, async_op: Literal[False] = False, timeout: Timeout = None,
) -> T: ...
@overload
def permute(
    x: T, pairs: Sequence[tuple[int, int]], *,
    out: T | None = None, group: Group | None = None, async_op: Literal[True], timeout: Timeout = None,
) -> Work[T]: ...
@overload
def permute(
    x: T, pairs: Sequence[tuple[int, int]], *,
    out: T | None = None, group: Group | None = None, async_op: bool, timeout: Timeout = None,
) -> T | Work[T]: ...
@overload
def sendrecv(
    x: T, dst: int, src: int, tag: int = 0, *,
    out: T | None = None, group: Group | None = None, async_op: Literal[False] = False, timeout: Timeout = None,
) -> T: ...
@overload
def sendrecv(
    x: T, dst: int, src: int, tag: int = 0, *,
    out: T | None = None, group: Group | None = None, async_op: Literal[True], timeout: Timeout = None,
) -> Work[T]: ...
@overload
def sendrecv(
    x: T, dst: int, src: int, tag: int = 0, *,
    out: T | None = None, group: Group | None = None, async_op: bool, timeout: Timeout = None,
) -> T | Work[T]: ...
@overload
def broadcast(
    x: None, root: int = 0, *,
    out: None | None = None, group: Group | None = None, async_op: Literal[False] = False, timeout: Timeout = None,
) -> Any: ...
@overload
def broadcast(
    x: None, root: int = 0, *,
    out: None | None = None, group: Group | None = None, async_op: Literal[True], timeout: Timeout = None,
) -> Work[Any]: ...
@overload
def broadcast(
    x: T | None, root: int = 0, *,
    out: T | None = None, group: Group | None = None, async_op: Literal[False] = False, timeout: Timeout = None,
) -> T: ...
@overload
def broadcast(
    x: T | None, root: int = 0, *,
    out: T | None = None, group: Group | None = None, async_op: Literal[True], timeout: Timeout = None,
) -> Work[T]: ...
@overload
def broadcast(
    x: T | None, root: int = 0, *,
    out: T | None = None, group: Group | None = None, async_op: bool, timeout: Timeout = None,
) -> T | Work[T]: ...
@overload
def scatter(
    x: None, root: int = 0, axis: int | None = 0, *,
    sizes: Sequence[int] | None = None, out: None | None = None, group: Group | None = None,
    async_op: Literal[False] = False, timeout: Timeout = None,
) -> Any: ...
@overload
def scatter(
    x: None, root: int = 0, axis: int | None = 0, *,
    sizes: Sequence[int] | None = None, out: None | None = None, group: Group | None = None,
    async_op: Literal[True], timeout: Timeout = None,
) -> Work[Any]: ...
@overload
def scatter(
    x: T | None, root: int = 0, axis: int | None = 0, *,
    sizes: Sequence[int] | None = None, out: T | None = None, group: Group | None = None,
    async_op: Literal[False] = False, timeout: Timeout = None,
) -> T: ...
@overload
def scatter(
    x: T | None, root: int = 0, axis: int | None = 0, *,
    sizes: Sequence[int] | None = None, out: T | None = None, group: Group | None = None,
    async_op: Literal[True], timeout: Timeout = None,
) -> Work[T]: ...
@overload
def scatter(
    x: T | None, root: int = 0, axis: int | None = 0, *,
    sizes: Sequence[int] | None = None, out: T | None = None, group: Group | None = None,
    async_op: bool, timeout: Timeout = None,
) -> T | Work[T]: ...
@overload
def all_gather(
    x: complex, axis: int | None = 0, *,
    uneven: bool = False, sizes: Sequence[int] | None = None, out: NDArray[Any] | None = None, group: Group | None = None,
    async_op: Literal[False] = False, timeout: Timeout = None,
) -> NDArray[Any]: ...
@overload
def all_gather(
    x: complex, axis: int | None = 0, *,
    uneven: bool = False, sizes: Sequence[int] | None = None, out: NDArray[Any] | None = None, group: Group | None = None,
    async_op: Literal[True], timeout: Timeout = None,
) -> Work[NDArray[Any]]: ...
@overload
def all_gather(
    x: T, axis: int | None = 0, *,
    uneven: bool = False, sizes: Sequence[int] | None = None, out: T | None = None, group: Group | None = None,
    async_op: Literal[False] = False, timeout: Timeout = None,
) -> T: ...
@overload
def all_gather(
    x: T, axis: int | None = 0, *,
    uneven: bool = False, sizes: Sequence[int] | None = None, out: T | None = None, group: Group | None = None,
    async_op: Literal[True], timeout: Timeout = None,
) -> Work[T]: ...
@overload
def all_gather(
    x: T, axis: int | None = 0, *,
    uneven: bool = False, sizes: Sequence[int] | None = None, out: T | None = None, group: Group | None = None,
    async_op: bool, timeout: Timeout = None,
) -> T | Work[T]: ...
@overload
def gather(
    x: complex, root: int = 0, axis: int | None = 0, *,
    uneven: bool = False, sizes: Sequence[int] | None = None, out: NDArray[Any] | None = None, group: Group | None = None,
    async_op: Literal[False] = False, timeout: Timeout = None,
) -> NDArray[Any] | complex: ...
@overload
def gather(
    x: complex, root: int = 0, axis: int | None = 0, *,
    uneven: bool = False, sizes: Sequence[int] | None = None, out: NDArray[Any] | None = None, group: Group | None = None,
    async_op: Literal[True], timeout: Timeout = None,
) -> Work[NDArray[Any] | complex]: ...
@overload
def gather(
    x: T, root: int = 0, axis: int | None = 0, *,
    uneven: bool = False, sizes: Sequence[int] | None = None, out: T | None = None, group: Group | None = None,
    async_op: Literal[False] = False, timeout: Timeout = None,
) -> T: ...
@overload
def gather(
    x: T, root: int = 0, axis: int | None = 0, *,
    uneven: bool = False, sizes: Sequence[int] | None = None, out: T | None = None, group: Group | None = None,
    async_op: Literal[True], timeout: Timeout = None,
) -> Work[T]: ...
@overload
def gather(
    x: T, root: int = 0, axis: int | None = 0, *,
    uneven: bool = False, sizes: Sequence[int] | None = None, out: T | None = None, group: Group | None = None,
    async_op: bool, timeout: Timeout = None,
) -> T | Work[T]: ...
@overload
def barrier(*, group: Group | None = None, async_op: Literal[False] = False, timeout: Timeout = None) -> None: ...
@overload
def barrier(*, group: Group | None = None, async_op: Literal[True], timeout: Timeout = None) -> Work[None]: ...
@overload
def barrier(*, group: Group | None = None, async_op: bool, timeout: Timeout = None) -> None | Work[None]: ...
@overload
def send(
    x: object, dst: int, tag: int = 0, *,
    group: Group | None = None, async_op: Literal[False] = False, timeout: Timeout = None,
) -> None: ...
@overload
def send(
    x: object, dst: int, tag: int = 0, *,
    group: Group | None = None, async_op: Literal[True], timeout: Timeout = None,
) -> Work[None]: ...
@overload
def send(
    x: object, dst: int, tag: int = 0, *,
    group: Group | None = None, async_op: bool, timeout: Timeout = None,
) -> None | Work[None]: ...
@overload
def recv(
    src: int | None = None, tag: int | None = 0, *,
    like: T, out: None = None, group: Group | None = None, async_op: Literal[False] = False, timeout: Timeout = None,
) -> T: ...
@overload
def recv(
    src: int | None = None, tag: int | None = 0, *,
    like: T, out: None = None, group: Group | None = None, async_op: Literal[True], timeout: Timeout = None,
) -> Work[T]: ...
@overload
def recv(
    src: int | None = None, tag: int | None = 0, *,
    like: T, out: None = None, group: Group | None = None, async_op: bool, timeout: Timeout = None,
) -> T | Work[T]: ...
@overload
def recv(
    src: int | None = None, tag: int | None = 0, *,
    like: None = None, out: T, group: Group | None = None, async_op: Literal[False] = False, timeout: Timeout = None,
) -> T: ...
@overload
def recv(
    src: int | None = None, tag: int | None = 0, *,
    like: None = None, out: T, group: Group | None = None, async_op: Literal[True], timeout: Timeout = None,
) -> Work[T]: ...
@overload
def recv(
    src: int | None = None, tag: int | None = 0, *,
    like: None = None, out: T, group: Group | None = None, async_op: bool, timeout: Timeout = None,
) -> T | Work[T]: ...
@overload
def recv(
    src: int | None = None, tag: int | None = 0, *,
    like: None = None, out: None = None, group: Group | None = None, async_op: Literal[False] = False, timeout: Timeout = None,
) -> Any: ...
@overload
def recv(
    src: int | None = None, tag: int | None = 0, *,
    like: None = None, out: None = None, group: Group | None = None, async_op: Literal[True], timeout: Timeout = None,
) -> Work[Any]: ...
@overload
def recv(
    src: int | None = None, tag: int | None = 0, *,
    like: None = None, out: None = None, group: Group | None = None, async_op: bool, timeout: Timeout = None,
) -> Any: ...
def isend(
    x: object, dst: int, tag: int = 0, *,
    group: Group | None = None, timeout: Timeout = None,
) -> Work[None]: ...
@overload
def irecv(
    src: int | None = None, tag: int | None = 0, *,
    like: T, out: None = None, group: Group | None = None, timeout: Timeout = None,
) -> Work[T]: ...
@overload
def irecv(
    src: int | None = None, tag: int | None = 0, *,
    like: None = None, out: T, group: Group | None = None, timeout: Timeout = None,
) -> Work[T]: ...
@overload
def irecv(
    src: int | None = None, tag: int | None = 0, *,
    like: None = None, out: None = None, group: Group | None = None, timeout: Timeout = None,
) -> Work[Any]: ...
def probe(
    src: int | None = None, tag: int | None = 0, *, group: Group | None = None, timeout: Timeout = None,
) -> Message: ...
def iprobe(src: int | None = None, tag: int | None = 0, *, group: Group | None = None) -> Message | None: ...
def verbs() -> list[str]: ...
