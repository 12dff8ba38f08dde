# _native.pyi: types of the module that C++ makes. Names here and there are compared by a test.
# SPDX-License-Identifier: Apache-2.0
import datetime
from collections.abc import Callable, Generator, Sequence
from types import TracebackType
from typing import Any, TypeVar, overload

from numpy.typing import NDArray

from ._calls.group import GroupVerbs

A = TypeVar("A")

Timeout = float | datetime.timedelta | None  # seconds; None: the default

version: str

class Op:
    """How the ranks' elements become one."""

    @property
    def name(self) -> str: ...
    @property
    def factor(self) -> float: ...
    def __repr__(self) -> str: ...
    def __eq__(self, arg: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

def premul(factor: float) -> Op:
    """The sum of `factor` times each rank's contribution."""

def op(name: str | Op) -> Op: ...

def note_structure(hash: int, words: str) -> None:
    """What a call's `structure` stands for, for messages about trees that differ."""

class Adjoint:
    """How gradients flow back through a call."""

    @property
    def kind(self) -> str: ...
    @property
    def call(self) -> Call: ...
    @property
    def scale(self) -> float: ...
    @property
    def adds_own(self) -> bool: ...
    @property
    def zero(self) -> bool: ...

def call_names() -> list[str]: ...

class Call:
    """A collective as a value: everything but its arrays and its group."""

    def __init__(
        self,
        verb: str,
        /,
        *,
        op: str | Op = "sum",
        root: int = 0,
        axis: int | None = 0,
        concat_axis: int = 0,
        uneven: bool = False,
        sizes: Sequence[int] | None = None,
        recv_sizes: Sequence[int] | None = None,
        pairs: Sequence[tuple[int, int]] = (),
        reverse: bool = False,
        dst: int = -1,
        src: int = -1,
        tag: int = 0,
        structure: int = 0,
        kind: int = 0,
    ) -> None: ...
    @property
    def verb(self) -> str: ...
    @property
    def joins(self) -> bool: ...
    @property
    def splits(self) -> bool: ...
    @property
    def has_blocks(self) -> bool: ...
    @property
    def keeps_shape(self) -> bool: ...
    @property
    def root_gives(self) -> bool: ...
    @property
    def root_gets(self) -> bool: ...
    @property
    def op(self) -> Op: ...
    @property
    def root(self) -> int: ...
    @property
    def axis(self) -> int | None: ...
    @property
    def concat_axis(self) -> int: ...
    @property
    def uneven(self) -> bool: ...
    @property
    def sizes(self) -> tuple[int, ...] | None: ...
    @property
    def recv_sizes(self) -> tuple[int, ...] | None: ...
    @property
    def pairs(self) -> tuple[tuple[int, int], ...]: ...
    @property
    def reverse(self) -> bool: ...
    @property
    def dst(self) -> int: ...
    @property
    def src(self) -> int: ...
    @property
    def tag(self) -> int: ...
    @property
    def structure(self) -> int: ...
    @property
    def kind(self) -> int: ...
    @property
    def learns_sizes(self) -> bool: ...
    def encode(self) -> str: ...
    @staticmethod
    def decode(text: str, /) -> Call: ...
    def replace(self, **fields: Any) -> Call: ...
    def output_shape(self, shape: Sequence[int], rank: int, size: int) -> tuple[int, ...]: ...
    def adjoint(self, shape: Sequence[int] | None, rank: int, size: int) -> Adjoint:
        """
        How gradients flow back; `shape` is that of the input on this rank, None where it is not known yet.
        """

    def __eq__(self, arg: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __repr__(self) -> str: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

class Array:
    """
    Memory with a shape: what frameworks hand to the core and get from it without a copy.
    """

    def __init__(
        self,
        pointer: int,
        dtype: str,
        shape: Sequence[int],
        strides: Sequence[int] | None = None,
        read_only: bool = False,
        owner: object | None = None,
        gpu: int | None = None,
    ) -> None: ...
    @property
    def gpu(self) -> int | None: ...
    @property
    def pointer(self) -> int: ...
    @property
    def dtype(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...]: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def kind(self) -> int: ...
    @property
    def source(self) -> int: ...
    @property
    def read_only(self) -> bool: ...
    def numpy(self) -> Any: ...
    def __dlpack__(self, **wishes: Any) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __len__(self) -> int: ...
    def __repr__(self) -> str: ...

def copy_elements(source: Any, target: Any) -> None:
    """Copies an array into another one of the same shape and dtype."""

def gpu_problem() -> str:
    """Why this process can use no GPU; empty: it can."""

def note_stream(array: int, gpu: int, stream: int) -> None:
    """The next call that has an array at this address begins behind what the stream has now."""

def new_array(dtype: str, shape: Sequence[int]) -> Array:
    """An Array of our own, elements not initialised."""

class PreparedCall:
    """A call that is checked and laid out once and started as often as wanted."""

    def __init__(self, group: Group, call: Call, x: Any, out: Any, timeout: Timeout = None) -> None: ...
    def start(self, x: Any = None, out: Any = None) -> None:
        """Begins the call with the arrays it was prepared with, or with others of the same shape, strides and dtype."""

    def wait(self, timeout: Timeout = None) -> Any:
        """
        Waits for the call and gives its result. With a timeout in seconds, raises Timeout if it has not ended by
        then; the call goes on.
        """

    def test(self) -> bool:
        """Whether it has ended, well or not, or was never started. Makes progress, never blocks."""

    def __repr__(self) -> str: ...

class Work:
    """A call under way. Dropped, it keeps its arrays alive and never blocks."""

    def wait(self, timeout: Timeout = None) -> Any:
        """
        Waits for the call and gives its result. With a timeout in seconds, raises Timeout if it has not ended by
        then; the call goes on.
        """

    def test(self) -> bool:
        """Whether it has ended, well or not. Makes progress, never blocks."""

    def give_up(self) -> None:
        """
        The caller leaves this call: its arrays are not touched any more. A message is kept for the next receive, a collective that has not ended breaks its group.
        """

    def cancel(self) -> bool:
        """
        Takes a message back. True: as if it had never been, and wait() raises Aborted. False: it goes on; a send that its receiver has heard of, and no receive has found, is given back a little later, as wait() tells.
        """

    @property
    def source(self) -> int:
        """After a receive: the rank whose message it was."""

    @property
    def tag(self) -> int:
        """After a receive: the message's tag."""

    @property
    def count(self) -> int:
        """After a receive: how many elements came."""

    @property
    def verb(self) -> str: ...
    def __repr__(self) -> str: ...

    # As tutti/_works.py attaches them.
    def add_done_callback(self, callback: Callable[[Any], object]) -> None: ...
    def __await__(self) -> Generator[Any, None, Any]: ...
    def __enter__(self) -> Work: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

class Group(GroupVerbs):
    """Ranks that work together. Every verb is a method, too."""

    def __init__(self, ranks: Sequence[int], timeout: Timeout = None, backend: str | None = None) -> None: ...
    @property
    def id(self) -> int:
        """A number that no other group of this process ever has."""

    @property
    def rank(self) -> int:
        """This process's rank in the group; -1 on one that is not a member."""

    @property
    def size(self) -> int: ...
    @property
    def members(self) -> list[int]:
        """Ranks in the world, in the group's order."""

    @property
    def backend(self) -> str: ...
    def run(
        self, call: Call, input: Any, out: Any = None, *, differentiated: bool = False, timeout: Timeout = None
    ) -> None: ...
    def start(
        self,
        call: Call,
        input: Any,
        out: Any = None,
        *,
        differentiated: bool = False,
        timeout: Timeout = None,
        result: Any = None,
        finish: Callable[[Any], Any] | None = None,
        keep: Any = (),
    ) -> Work: ...
    def run_sized(
        self, call: Call, input: Any, out: Any = None, *, differentiated: bool = False, timeout: Timeout = None
    ) -> Array | None: ...
    def start_sized(
        self,
        call: Call,
        input: Any,
        out: Any = None,
        *,
        differentiated: bool = False,
        timeout: Timeout = None,
        finish: Callable[[Any], Any] | None = None,
    ) -> Work: ...
    def split(self, color: int | None, key: int = 0, timeout: Timeout = None, backend: str | None = None) -> Group:
        """
        Ranks with the same color come together, ordered by key. A rank with color None or a negative one stays out: it
        gets a group of rank -1 and size 0, whose verbs raise.
        """

    def subgroup(self, ranks: Sequence[int], timeout: Timeout = None, backend: str | None = None) -> Group:
        """
        The listed ranks of this group, in that order. Only they need call it. backend: auto, native, shm, ucx, mpi,
        nccl or cuda, the same on all members; without it, as this group.
        """

    def shrink(self, timeout: Timeout = None) -> Group:
        """The members that are left, in their order, as a new group: after a PeerLost, to go on. Every one of them calls it."""

    def duplicate(self) -> Group: ...
    def memory(self, bytes: int) -> Array:
        """Memory that the ranks of this host reach without a copy."""

    @overload
    def empty(self, shape: int | Sequence[int], dtype: object = "float32", *, like: None = None) -> NDArray[Any]: ...
    @overload
    def empty(self, shape: int | Sequence[int], dtype: object = "float32", *, like: A) -> A: ...

    def abort(self, reason: str) -> None:
        """Breaks the group on every member."""

    def refuse(self, call: Call, reason: str) -> None:
        """
        Tells the others that this rank takes no part in the call, which is its next one.
        """

    def __repr__(self) -> str: ...

    def run_send(self, array: Any, dst: int, tag: int = 0, timeout: Timeout = None, kind: int = 0) -> None: ...
    def run_recv(
        self, array: Any, src: int | None, tag: int | None = 0, timeout: Timeout = None
    ) -> Array | None: ...
    def start_send(self, array: Any, dst: int, tag: int = 0, timeout: Timeout = None, kind: int = 0) -> Work: ...
    def start_recv(
        self,
        array: Any,
        src: int | None,
        tag: int | None = 0,
        timeout: Timeout = None,
        result: Any = None,
        finish: Callable[[Any], Any] | None = None,
    ) -> Work: ...

class FoundMessage:
    """A message that a probe has reserved. Dropped, it goes back."""

    @property
    def source(self) -> int: ...
    @property
    def tag(self) -> int: ...
    @property
    def count(self) -> int: ...
    @property
    def dtype(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def kind(self) -> int: ...
    @property
    def is_valid(self) -> bool: ...
    def recv(self, array: Any, timeout: Timeout = None) -> Array | None: ...

def probe(group: Group, src: int | None, tag: int | None, timeout: Timeout) -> FoundMessage: ...
def iprobe(group: Group, src: int | None, tag: int | None) -> FoundMessage | None: ...
def group_of(id: int) -> Group: ...
def torch_entry(group: Group) -> Any: ...
def torch_entry_numbers() -> dict[str, int]: ...
def apply(call: Call, x: Any, out: Any, group: Group | None, async_op: bool, timeout: Timeout) -> Any: ...
def apply_plain(call: Call, x: Any) -> Any: ...
def average(tree: Any, group: Group | None, timeout: Timeout) -> Any: ...
def send(x: Any, dst: Any, tag: Any, group: Group | None, timeout: Timeout) -> None: ...
def recv(src: Any, tag: Any, like: Any, out: Any, group: Group | None, timeout: Timeout) -> Any: ...
def serve(type: type[Any], function: Callable[..., Any]) -> None:
    """
    Calls on arrays of exactly this type go to `function` at once, past _calls/dispatch.py.
    """

def serve_tensors(functions: dict[str, Any]) -> None:
    """
    Calls on torch's tensors are served in the core from now on, by these types and functions.
    """

class RecordedCall:
    """
    What backward needs to know of a call that torch's autograd recorded.
    """
    @property
    def call(self) -> Call: ...
    @property
    def adjoint(self) -> Adjoint: ...
    @property
    def group(self) -> Group: ...
    @property
    def timeout(self) -> Timeout: ...
    @property
    def input_shape(self) -> tuple[int, ...]: ...

def record_forward(ctx: Any, x: Any, recorded: RecordedCall) -> tuple[Any, Any]:
    """
    torch.autograd.Function.forward of a call that has run already.
    """

def serve_trees(
    types: Sequence[type[Any]],
    *,
    makes: type[Any] | None = None,
    allows: Callable[[list[Any]], bool] | None = None,
    views: Callable[[list[Any]], list[Any]] | None = None,
    finish: Callable[[list[Any], list[Any]], list[Any]] | None = None,
    run: Callable[..., list[Any]] | None = None,
    split: Callable[[Any, list[int]], Sequence[Any]] | None = None,
) -> None:
    """
    Trees of arrays of exactly these types are packed, sent and unpacked in one step.
    """

def plan_fused(items: Sequence[tuple[int, str]], group: Group | None = None) -> list[list[int]]:
    """
    Which arrays, given by (elements, dtype), travel together, by their places.
    """

def init(
    backend: str = "auto",
    init_method: str | None = None,
    rank: int | None = None,
    size: int | None = None,
    timeout: Timeout = None,
    communicator: int | None = None,
) -> Group: ...
def finalize() -> None: ...
def fail_at_exit() -> None: ...
def stats() -> dict[str, dict[str, dict[str, float]]]: ...
def dump_calls(path: str) -> None: ...
def world() -> Group: ...
def has_world() -> bool: ...
def place() -> dict[str, Any]: ...
def shard_sizes(count: int, parts: int) -> list[int]:
    """Parts that differ by one element at most."""

def pieces_of(sizes: Sequence[int], begin: int, length: int) -> list[tuple[int, int, int, int]]:
    """
    Where a range lies in shards of these sizes: (shard, offset in it, offset in the range, length), …
    """

def shuffled_indices(count: int, seed: int, epoch: int) -> Array: ...
def shard_indices(
    count: int, rank_and_size: tuple[int, int], seed_and_epoch: tuple[int, int], shuffle: bool, rest: str
) -> Array:
    """The samples of one rank in one epoch."""

class Mesh:
    """A grid of ranks. tutti.Mesh is what people use."""

    def __init__(self, group: Group, axes: Sequence[tuple[str, int, bool]], timeout: Timeout = None) -> None: ...
    def group(self, axes: Sequence[str]) -> Group: ...
    @property
    def axes(self) -> list[tuple[str, int, bool]]: ...
    @property
    def coordinates(self) -> list[int]: ...
    def rank_at(self, arg: Sequence[int], /) -> int: ...
    def neighbour(self, axis: str, distance: int) -> int: ...
    def skip_exchange(self) -> None: ...
    def exchange(
        self, group: Group, array: Any, halo: Sequence[int], axes: Sequence[int], timeout: Timeout
    ) -> None:
        """Fills the margins of an array, in place."""

    def exchange_parts(self, group: Group, data: Any, out: Any, sends_all: bool, timeout: Timeout) -> None:
        """A part from each neighbour, and to each its own or the same."""

    def describe(self) -> str: ...

def halo_axes(
    shape: Sequence[int], mesh_axes: int, halo: Sequence[int], axes: Sequence[int]
) -> list[tuple[int, int]]:
    """The axis of an array and the width of its margins, for each axis of a mesh."""

def plan_buckets(
    items: Sequence[tuple[int, str]], order: Sequence[int], bytes: int, first_bytes: int
) -> list[list[int]]:
    """
    Which of the items (bytes, dtype) share a bucket, if they become ready in this order.
    """

class BucketSchedule:
    """Tells which buckets can start, in the same order on every rank."""

    def __init__(self, plan: Sequence[Sequence[int]]) -> None: ...
    def ready(self, item: int) -> list[int]: ...
    def begin(self) -> None: ...
    def missing(self) -> list[int]: ...
    @property
    def arrivals(self) -> list[int]: ...
    @property
    def plan(self) -> list[list[int]]: ...

def adamw_step(
    parameter: object,
    gradient: object,
    mean: object,
    square: object,
    *,
    step: int,
    lr: float = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-08,
    weight_decay: float = 0.01,
    gradient_scale: float = 1.0,
) -> None:
    """One step of AdamW, in place."""

def sgd_step(
    parameter: object,
    gradient: object,
    velocity: object | None = None,
    *,
    lr: float,
    momentum: float = 0.0,
    dampening: float = 0.0,
    weight_decay: float = 0.0,
    nesterov: bool = False,
    is_first: bool = False,
    gradient_scale: float = 1.0,
) -> None:
    """One step of SGD, in place."""

def sum_of_squares(array: object) -> float:
    """Σ x² in float64, the same bits on every machine."""

quantised_block: int

def quantised_bytes(count: int) -> int: ...
def quantise(values: object, residual: object | None, records: object) -> None:
    """
    Records of values + residual; the residual becomes what they do not say.
    """

def dequantise(records: object, values: object, *, add: bool = False) -> None: ...
def join_through(store: object, rank: int, size: int, timeout: Timeout, host: str = "") -> Group:
    """
    A world of its own, beside that of init(): the ranks that come to the same store. leave() ends it.
    """

def init_through(store: object, rank: int, size: int, timeout: Timeout, host: str = "", backend: str = "auto") -> Group:
    """
    The world of init(), of the ranks that come to the same store.
    """

def watch_ranges(
    begin: Callable[[str], Any], end: Callable[[Any], Any], flags: dict[str, Any] | None = None, flag: str = "", always: bool = False
) -> None:
    """
    Has begin(name) and end(what that gave) called around calls: while flags[flag] is True, or always.
    """

def launched_size() -> int:
    """
    The number of ranks that the environment tells of.
    """

def leave(world: Group) -> None:
    """Says goodbye to the others of a world that join_through() made."""

class JobStore:
    """
    The key-value store of the job that this process has joined.
    """

    def __init__(self) -> None: ...
    def set(self, key: str, value: bytes, timeout: Timeout = None) -> None: ...
    def get(self, key: str, timeout: Timeout = None) -> bytes: ...
    def try_get(self, key: str, timeout: Timeout = None) -> bytes | None: ...
    def wait(self, key: str, timeout: Timeout = None) -> None: ...
    def add(self, key: str, amount: int, timeout: Timeout = None) -> int: ...
    def compare_set(self, key: str, expected: bytes | None, desired: bytes, timeout: Timeout = None) -> bytes: ...
    def remove(self, key: str, timeout: Timeout = None) -> bool: ...

class StoreServer:
    """
    Serves a store on a free port of loopback, on a thread of its own, while it lives.
    """

    def __init__(self, secret: str) -> None: ...
    @property
    def address(self) -> str: ...

class Answers:
    def __init__(self) -> None: ...
    def wait(self) -> bool: ...
    def answer(self, stack: str) -> None: ...

class Completions:
    """Numbers of calls that have ended, in the order in which they did."""

    def __init__(self) -> None: ...
    def watch(self, work: Work, number: int) -> None: ...
    def push(self, number: int) -> None: ...
    def pop(self, seconds: float) -> int | None:
        """The next number, or None if there is none for that long."""

class LogLines:
    """Takes the library's log lines, while it lives, from stderr."""

    def __init__(self, level: str) -> None: ...
    def pop(self, seconds: float) -> str | None:
        """The next line; None if there is none for that long, an empty one after close()."""

    def close(self) -> None: ...

def jax_handlers() -> dict[str, Any]:
    """XLA's handlers by the names that programs call them by."""

def jax_prepare(group: Group, call: Call) -> int:
    """The number under which a compiled program finds its group."""

def jax_rethrow(said: str) -> None:
    """Raises the error that XLA's text tells of, if it is one of ours."""

def jax_unseen_failure() -> str:
    """What the latest call of a program said, if it failed and nobody was told; once."""
