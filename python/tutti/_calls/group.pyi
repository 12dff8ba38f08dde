# group.pyi: the types of the verbs as methods of a group. A test compares their parameters with those of the methods.
# SPDX-License-Identifier: Apache-2.0
#
# `async_op` decides whether a verb gives its result or a Work. T is an array of any framework, a number, or a tree of arrays: what
# goes in comes out.
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar, overload

from numpy.typing import NDArray

from .._messages.messages import Message
from .._native import Timeout
from .verbs import Reduction
from .works import Work

T = TypeVar("T")

class GroupVerbs:
    """What Group inherits for type checkers; at run time the methods are attached to it."""

    @overload
    def all_reduce(
        self, x: T, op: Reduction | Callable[[T, T], T] = "sum", *,
        out: T | None = None, async_op: Literal[False] = False, timeout: Timeout = None,
    ) -> T: ...
    @overload
    def all_reduce(
        self, x: T, op: Reduction | Callable[[T, T], T] = "sum", *,
        out: T | None = None, async_op: Literal[True], timeout: Timeout = None,
    ) -> Work[T]: ...
    @overload
    def all_reduce(
        self, x: T, op: Reduction | Callable[[T, T], T] = "sum", *,
        out: T | None = None, async_op: bool, timeout: Timeout = None,
    ) -> T | Work[T]: ...
    @overload
    def reduce(
        self, x: T, root: int = 0, op: Reduction | Callable[[T, T], T] = "sum", *,
        out: T | None = None, async_op: Literal[False] = False, timeout: Timeout = None,
    ) -> T: ...
    @overload
    def reduce(
        self, x: T, root: int = 0, op: Reduction | Callable[[T, T], T] = "sum", *,
        out: T | None = None, async_op: Literal[True], timeout: Timeout = None,
    ) -> Work[T]: ...
    @overload
    def reduce(
        self, x: T, root: int = 0, op: Reduction | Callable[[T, T], T] = "sum", *,
        out: T | None = None, async_op: bool, timeout: Timeout = None,
    ) -> T | Work[T]: ...
    @overload
    def reduce_scatter(
        self, x: T, op: Reduction = "sum", axis: int | None = 0, *,
        sizes: Sequence[int] | None = None, out: T | None = None,
        async_op: Literal[False] = False, timeout: Timeout = None,
    ) -> T: ...
    @overload
    def reduce_scatter(
        self, x: T, op: Reduction = "sum", axis: int | None = 0, *,
        sizes: Sequence[int] | None = None, out: T | None = None, async_op: Literal[True], timeout: Timeout = None,
    ) -> Work[T]: ...
    @overload
    def reduce_scatter(
        self, x: T, op: Reduction = "sum", axis: int | None = 0, *,
        sizes: Sequence[int] | None = None, out: T | None = None, async_op: bool, timeout: Timeout = None,
    ) -> T | Work[T]: ...
    @overload
    def all_to_all(
        self, x: T, split_axis: int = 0, concat_axis: int = 0, *,
        split_sizes: Sequence[int] | None = None, recv_sizes: Sequence[int] | None = None, out: T | None = None,
        async_op: Literal[False] = False, timeout: Timeout = None,
    ) -> T: ...
    @overload
    def all_to_all(
        self, x: T, split_axis: int = 0, concat_axis: int = 0, *,
        split_sizes: Sequence[int] | None = None, recv_sizes: Sequence[int] | None = None, out: T | None = None,
        async_op: Literal[True], timeout: Timeout = None,
    ) -> Work[T]: ...
    @overload
    def all_to_all(
        self, x: T, split_axis: int = 0, concat_axis: int = 0, *,
        split_sizes: Sequence[int] | None = None, recv_sizes: Sequence[int] | None = None, out: T | None = None,
        async_op: bool, timeout: Timeout = None,
    ) -> T | Work[T]: ...
    @overload
    def scan(
        self, x: T, op: Reduction | Callable[[T, T], T] = "sum", *,
        out: T | None = None, async_op: Literal[False] = False, timeout: Timeout = None,
    ) -> T: ...
    @overload
    def scan(
        self, x: T, op: Reduction | Callable[[T, T], T] = "sum", *,
        out: T | None = None, async_op: Literal[True], timeout: Timeout = None,
    ) -> Work[T]: ...
    @overload
    def scan(
        self, x: T, op: Reduction | Callable[[T, T], T] = "sum", *,
        out: T | None = None, async_op: bool, timeout: Timeout = None,
    ) -> T | Work[T]: ...
    @overload
    def exscan(
        self, x: T, op: Reduction | Callable[[T, T], T] = "sum", *,
        out: T | None = None, async_op: Literal[False] = False, timeout: Timeout = None,
    ) -> T: ...
    @overload
    def exscan(
        self, x: T, op: Reduction | Callable[[T, T], T] = "sum", *,
        out: T | None = None, async_op: Literal[True], timeout: Timeout = None,
    ) -> Work[T]: ...
    @overload
    def exscan(
        self, x: T, op: Reduction | Callable[[T, T], T] = "sum", *,
        out: T | None = None, async_op: bool, timeout: Timeout = None,
    ) -> T | Work[T]: ...
    @overload
    def permute(
        self, x: T, pairs: Sequence[tuple[int, int]], *,
        out: T | None = None, async_op: Literal[False] = False, timeout: Timeout = None,
    ) -> T: ...
    @overload
    def permute(
        self, x: T, pairs: Sequence[tuple[int, int]], *,
        out: T | None = None, async_op: Literal[True], timeout: Timeout = None,
    ) -> Work[T]: ...
    @overload
    def permute(
        self, x: T, pairs: Sequence[tuple[int, int]], *,
        out: T | None = None, async_op: bool, timeout: Timeout = None,
    ) -> T | Work[T]: ...
    @overload
    def sendrecv(
        self, x: T, dst: int, src: int, tag: int = 0, *,
        out: T | None = None, async_op: Literal[False] = False, timeout: Timeout = None,
    ) -> T: ...
    @overload
    def sendrecv(
        self, x: T, dst: int, src: int, tag: int = 0, *,
        out: T | None = None, async_op: Literal[True], timeout: Timeout = None,
    ) -> Work[T]: ...
    @overload
    def sendrecv(
        self, x: T, dst: int, src: int, tag: int = 0, *,
        out: T | None = None, async_op: bool, timeout: Timeout = None,
    ) -> T | Work[T]: ...
    @overload
    def broadcast(
        self, x: None, root: int = 0, *,
        out: None | None = None, async_op: Literal[False] = False, timeout: Timeout = None,
    ) -> Any: ...
    @overload
    def broadcast(
        self, x: None, root: int = 0, *,
        out: None | None = None, async_op: Literal[True], timeout: Timeout = None,
    ) -> Work[Any]: ...
    @overload
    def broadcast(
        self, x: T | None, root: int = 0, *,
        out: T | None = None, async_op: Literal[False] = False, timeout: Timeout = None,
    ) -> T: ...
    @overload
    def broadcast(
        self, x: T | None, root: int = 0, *,
        out: T | None = None, async_op: Literal[True], timeout: Timeout = None,
    ) -> Work[T]: ...
    @overload
    def broadcast(
        self, x: T | None, root: int = 0, *,
        out: T | None = None, async_op: bool, timeout: Timeout = None,
    ) -> T | Work[T]: ...
    @overload
    def scatter(
        self, x: None, root: int = 0, axis: int | None = 0, *,
        sizes: Sequence[int] | None = None, out: None | None = None,
        async_op: Literal[False] = False, timeout: Timeout = None,
    ) -> Any: ...
    @overload
    def scatter(
        self, x: None, root: int = 0, axis: int | None = 0, *,
        sizes: Sequence[int] | None = None, out: None | None = None, async_op: Literal[True], timeout: Timeout = None,
    ) -> Work[Any]: ...
    @overload
    def scatter(
        self, x: T | None, root: int = 0, axis: int | None = 0, *,
        sizes: Sequence[int] | None = None, out: T | None = None,
        async_op: Literal[False] = False, timeout: Timeout = None,
    ) -> T: ...
    @overload
    def scatter(
        self, x: T | None, root: int = 0, axis: int | None = 0, *,
        sizes: Sequence[int] | None = None, out: T | None = None, async_op: Literal[True], timeout: Timeout = None,
    ) -> Work[T]: ...
    @overload
    def scatter(
        self, x: T | None, root: int = 0, axis: int | None = 0, *,
        sizes: Sequence[int] | None = None, out: T | None = None, async_op: bool, timeout: Timeout = None,
    ) -> T | Work[T]: ...
    @overload
    def all_gather(
        self, x: complex, axis: int | None = 0, *,
        uneven: bool = False, sizes: Sequence[int] | None = None, out: NDArray[Any] | None = None,
        async_op: Literal[False] = False, timeout: Timeout = None,
    ) -> NDArray[Any]: ...
    @overload
    def all_gather(
        self, x: complex, axis: int | None = 0, *,
        uneven: bool = False, sizes: Sequence[int] | None = None, out: NDArray[Any] | None = None,
        async_op: Literal[True], timeout: Timeout = None,
    ) -> Work[NDArray[Any]]: ...
    @overload
    def all_gather(
        self, x: T, axis: int | None = 0, *,
        uneven: bool = False, sizes: Sequence[int] | None = None, out: T | None = None,
        async_op: Literal[False] = False, timeout: Timeout = None,
    ) -> T: ...
    @overload
    def all_gather(
        self, x: T, axis: int | None = 0, *,
        uneven: bool = False, sizes: Sequence[int] | None = None, out: T | None = None,
        async_op: Literal[True], timeout: Timeout = None,
    ) -> Work[T]: ...
    @overload
    def all_gather(
        self, x: T, axis: int | None = 0, *,
        uneven: bool = False, sizes: Sequence[int] | None = None, out: T | None = None,
        async_op: bool, timeout: Timeout = None,
    ) -> T | Work[T]: ...
    @overload
    def gather(
        self, x: complex, root: int = 0, axis: int | None = 0, *,
        uneven: bool = False, sizes: Sequence[int] | None = None, out: NDArray[Any] | None = None,
        async_op: Literal[False] = False, timeout: Timeout = None,
    ) -> NDArray[Any] | complex: ...
    @overload
    def gather(
        self, x: complex, root: int = 0, axis: int | None = 0, *,
        uneven: bool = False, sizes: Sequence[int] | None = None, out: NDArray[Any] | None = None,
        async_op: Literal[True], timeout: Timeout = None,
    ) -> Work[NDArray[Any] | complex]: ...
    @overload
    def gather(
        self, x: T, root: int = 0, axis: int | None = 0, *,
        uneven: bool = False, sizes: Sequence[int] | None = None, out: T | None = None,
        async_op: Literal[False] = False, timeout: Timeout = None,
    ) -> T: ...
    @overload
    def gather(
        self, x: T, root: int = 0, axis: int | None = 0, *,
        uneven: bool = False, sizes: Sequence[int] | None = None, out: T | None = None,
        async_op: Literal[True], timeout: Timeout = None,
    ) -> Work[T]: ...
    @overload
    def gather(
        self, x: T, root: int = 0, axis: int | None = 0, *,
        uneven: bool = False, sizes: Sequence[int] | None = None, out: T | None = None,
        async_op: bool, timeout: Timeout = None,
    ) -> T | Work[T]: ...
    @overload
    def barrier(self, *, async_op: Literal[False] = False, timeout: Timeout = None) -> None: ...
    @overload
    def barrier(self, *, async_op: Literal[True], timeout: Timeout = None) -> Work[None]: ...
    @overload
    def barrier(self, *, async_op: bool, timeout: Timeout = None) -> None | Work[None]: ...
    @overload
    def send(
        self, x: object, dst: int, tag: int = 0, *,
        async_op: Literal[False] = False, timeout: Timeout = None,
    ) -> None: ...
    @overload
    def send(
        self, x: object, dst: int, tag: int = 0, *,
        async_op: Literal[True], timeout: Timeout = None,
    ) -> Work[None]: ...
    @overload
    def send(
        self, x: object, dst: int, tag: int = 0, *,
        async_op: bool, timeout: Timeout = None,
    ) -> None | Work[None]: ...
    @overload
    def recv(
        self, src: int | None = None, tag: int | None = 0, *,
        like: T, out: None = None, async_op: Literal[False] = False, timeout: Timeout = None,
    ) -> T: ...
    @overload
    def recv(
        self, src: int | None = None, tag: int | None = 0, *,
        like: T, out: None = None, async_op: Literal[True], timeout: Timeout = None,
    ) -> Work[T]: ...
    @overload
    def recv(
        self, src: int | None = None, tag: int | None = 0, *,
        like: T, out: None = None, async_op: bool, timeout: Timeout = None,
    ) -> T | Work[T]: ...
    @overload
    def recv(
        self, src: int | None = None, tag: int | None = 0, *,
        like: None = None, out: T, async_op: Literal[False] = False, timeout: Timeout = None,
    ) -> T: ...
    @overload
    def recv(
        self, src: int | None = None, tag: int | None = 0, *,
        like: None = None, out: T, async_op: Literal[True], timeout: Timeout = None,
    ) -> Work[T]: ...
    @overload
    def recv(
        self, src: int | None = None, tag: int | None = 0, *,
        like: None = None, out: T, async_op: bool, timeout: Timeout = None,
    ) -> T | Work[T]: ...
    @overload
    def recv(
        self, src: int | None = None, tag: int | None = 0, *,
        like: None = None, out: None = None, async_op: Literal[False] = False, timeout: Timeout = None,
    ) -> Any: ...
    @overload
    def recv(
        self, src: int | None = None, tag: int | None = 0, *,
        like: None = None, out: None = None, async_op: Literal[True], timeout: Timeout = None,
    ) -> Work[Any]: ...
    @overload
    def recv(
        self, src: int | None = None, tag: int | None = 0, *,
        like: None = None, out: None = None, async_op: bool, timeout: Timeout = None,
    ) -> Any: ...
    def isend(self, x: object, dst: int, tag: int = 0, *, timeout: Timeout = None) -> Work[None]: ...
    @overload
    def irecv(
        self, src: int | None = None, tag: int | None = 0, *,
        like: T, out: None = None, timeout: Timeout = None,
    ) -> Work[T]: ...
    @overload
    def irecv(
        self, src: int | None = None, tag: int | None = 0, *,
        like: None = None, out: T, timeout: Timeout = None,
    ) -> Work[T]: ...
    @overload
    def irecv(
        self, src: int | None = None, tag: int | None = 0, *,
        like: None = None, out: None = None, timeout: Timeout = None,
    ) -> Work[Any]: ...
    def probe(
        self, src: int | None = None, tag: int | None = 0, *, timeout: Timeout = None,
    ) -> Message: ...
    def iprobe(self, src: int | None = None, tag: int | None = 0) -> Message | None: ...
    @overload
    def broadcast_object(
        self, value: T | None = None, root: int = 0, *,
        allow_pickle: bool = False, async_op: Literal[False] = False, timeout: Timeout = None,
    ) -> T: ...
    @overload
    def broadcast_object(
        self, value: T | None = None, root: int = 0, *,
        allow_pickle: bool = False, async_op: Literal[True], timeout: Timeout = None,
    ) -> Work[T]: ...
    @overload
    def broadcast_object(
        self, value: T | None = None, root: int = 0, *,
        allow_pickle: bool = False, async_op: bool, timeout: Timeout = None,
    ) -> T | Work[T]: ...
    @overload
    def all_gather_object(
        self, value: T, *,
        allow_pickle: bool = False, async_op: Literal[False] = False, timeout: Timeout = None,
    ) -> list[T]: ...
    @overload
    def all_gather_object(
        self, value: T, *,
        allow_pickle: bool = False, async_op: Literal[True], timeout: Timeout = None,
    ) -> Work[list[T]]: ...
    @overload
    def all_gather_object(
        self, value: T, *,
        allow_pickle: bool = False, async_op: bool, timeout: Timeout = None,
    ) -> list[T] | Work[list[T]]: ...
    @overload
    def gather_object(
        self, value: T, root: int = 0, *,
        allow_pickle: bool = False, async_op: Literal[False] = False, timeout: Timeout = None,
    ) -> list[T] | None: ...
    @overload
    def gather_object(
        self, value: T, root: int = 0, *,
        allow_pickle: bool = False, async_op: Literal[True], timeout: Timeout = None,
    ) -> Work[list[T] | None]: ...
    @overload
    def gather_object(
        self, value: T, root: int = 0, *,
        allow_pickle: bool = False, async_op: bool, timeout: Timeout = None,
    ) -> list[T] | None | Work[list[T] | None]: ...
    @overload
    def scatter_object(
        self, values: Sequence[T] | None = None, root: int = 0, *,
        allow_pickle: bool = False, async_op: Literal[False] = False, timeout: Timeout = None,
    ) -> T: ...
    @overload
    def scatter_object(
        self, values: Sequence[T] | None = None, root: int = 0, *,
        allow_pickle: bool = False, async_op: Literal[True], timeout: Timeout = None,
    ) -> Work[T]: ...
    @overload
    def scatter_object(
        self, values: Sequence[T] | None = None, root: int = 0, *,
        allow_pickle: bool = False, async_op: bool, timeout: Timeout = None,
    ) -> T | Work[T]: ...
    @overload
    def send_object(
        self, value: object, dst: int, tag: int = 0, *,
        allow_pickle: bool = False, async_op: Literal[False] = False, timeout: Timeout = None,
    ) -> None: ...
    @overload
    def send_object(
        self, value: object, dst: int, tag: int = 0, *,
        allow_pickle: bool = False, async_op: Literal[True], timeout: Timeout = None,
    ) -> Work[None]: ...
    @overload
    def send_object(
        self, value: object, dst: int, tag: int = 0, *,
        allow_pickle: bool = False, async_op: bool, timeout: Timeout = None,
    ) -> None | Work[None]: ...
    @overload
    def recv_object(
        self, src: int | None = None, tag: int | None = 0, *,
        allow_pickle: bool = False, async_op: Literal[False] = False, timeout: Timeout = None,
    ) -> Any: ...
    @overload
    def recv_object(
        self, src: int | None = None, tag: int | None = 0, *,
        allow_pickle: bool = False, async_op: Literal[True], timeout: Timeout = None,
    ) -> Work[Any]: ...
    @overload
    def recv_object(
        self, src: int | None = None, tag: int | None = 0, *,
        allow_pickle: bool = False, async_op: bool, timeout: Timeout = None,
    ) -> Any: ...

def install() -> None: ...
