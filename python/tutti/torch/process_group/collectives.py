# collectives.py: torch.distributed's collectives, in all their forms, as calls of a Tutti group.
# SPDX-License-Identifier: Apache-2.0
"""Methods have the names by which torch calls them; where torch renamed a verb, the old name is there too, because
callers in C++ look for either. Lists of tensors become flat arrays (see layout.py).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import torch

from ... import _native
from ..._errors import InvalidArgument, Timeout
from .layout import Flat
from .modes import ShownToModes, shown_to_modes
from .options import Options, call_of, divides_after, read_options
from .sparse import start_sparse_all_reduce
from .work import Ended, Result, Work, explained

Tensor = torch.Tensor
Tensors = Sequence[Tensor]


def _listed(tensors: Tensor | Tensors) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _only(lists: Sequence, what: str) -> Any:
    if len(lists) != 1:
        raise InvalidArgument(f"backend tutti: {what} takes the tensors of one device, not of {len(lists)}")
    return lists[0]


class Step:
    """One call of the core: what it reads, what it writes, and where results go afterwards."""

    __slots__ = ("call", "source", "target", "divisor")

    def __init__(self, call: _native.Call, source: Flat | None, target: Flat | None = None, divisor: int = 1) -> None:
        self.call = call
        self.source = source
        self.target = target
        self.divisor = divisor  # of the result, once it is there

    @property
    def has_end(self) -> bool:
        return self.target is not None and (self.target.is_staged or self.divisor != 1)

    def end(self) -> None:
        """Brings the result to where it belongs."""
        self.target.restore()
        if self.divisor != 1:
            self.target.divide(self.divisor)

    @property
    def arrays(self) -> tuple[_native.Array | None, _native.Array | None]:
        return (
            None if self.source is None else self.source.array,
            None if self.target is None else self.target.array,
        )


class Collectives(ShownToModes):
    """What ProcessGroup is, as far as collectives go. `group`, `_call_lock` and `_seconds` come from there."""

    group: _native.Group

    def _run(self, steps: Sequence[Step], result: Result, options: Options) -> Work:
        """Starts the steps and, if the caller waits anyway, ends them.

        The shortest way is to run a call in one go. Where there are other threads it is started and then waited for,
        because one of them may have to send the very message for want of which another rank does not come to this
        call.
        """
        seconds = options.seconds or self._seconds
        ending = [step for step in steps if step.has_end]
        if not (options.is_async or ending) and len(steps) == 1 and threading.active_count() == 1:
            try:
                self.group.run(steps[0].call, *steps[0].arrays, timeout=seconds)
            except Timeout as error:
                raise explained(error) from None
            return Ended(result)
        with self._call_lock:
            parts = [self.group.start(step.call, *step.arrays, timeout=seconds) for step in steps]
        work = Work(parts, result, (lambda: [step.end() for step in ending] and None) if ending else None)
        if not options.is_async:
            work.complete()
        return work

    def _check_parts(self, parts: Sequence, what: str) -> None:
        if len(parts) != self.size():
            raise InvalidArgument(
                f"backend tutti: {what} needs a list of {self.size()} tensors, one per rank, and got {len(parts)}"
            )

    @shown_to_modes
    def allreduce(self, tensors: Tensor | Tensors, *given, **named) -> Work:
        options, tensors = read_options(given, named), _listed(tensors)
        if any(tensor.layout is not torch.strided for tensor in tensors):
            return start_sparse_all_reduce(self, _only(tensors, "a sparse all_reduce"), options)
        with self._recorded("all_reduce", tensors):
            return self._run([self._in_place("all_reduce", [tensor], options) for tensor in tensors], tensors, options)

    def _in_place(self, verb: str, tensors: Tensors, options: Options) -> Step:
        flat = Flat(tensors, reduced=verb != "broadcast")
        if verb == "broadcast":
            return Step(call_of(verb, options), flat, flat)
        return self._reducing(verb, tensors[0], options, flat, flat)

    def _reducing(
        self, verb: str, like: Tensor, options: Options, source: Flat, target: Flat | None,
        sizes: Sequence[int] | None = None,
    ) -> Step:
        """A step of a verb that reduces elements like these."""
        if not divides_after(options, like):
            return Step(call_of(verb, options, sizes=sizes), source, target)
        return Step(call_of(verb, options._replace(op="sum"), sizes=sizes), source, target, self.size())

    @shown_to_modes
    def allreduce_coalesced(self, tensors: Tensors, *given, **named) -> Work:
        """Tensors of one dtype travel together."""
        options, tensors = read_options(given, named), _listed(tensors)
        kinds: dict[torch.dtype, list[Tensor]] = {}
        for tensor in tensors:
            kinds.setdefault(tensor.dtype, []).append(tensor)
        with self._recorded("all_reduce", tensors):
            steps = [self._in_place("all_reduce", alike, options) for alike in kinds.values()]
            return self._run(steps, tensors, options)

    @shown_to_modes
    def reduce(self, tensors: Tensor | Tensors, *given, **named) -> Work:
        options, tensors = read_options(given, named), _listed(tensors)
        with self._recorded("reduce", tensors):
            flat = Flat([_only(tensors, "reduce")], reduced=True)
            target = flat if self.rank() == options.root else None  # elsewhere the tensor stays as it is
            return self._run([self._reducing("reduce", tensors[0], options, flat, target)], tensors, options)

    @shown_to_modes
    def broadcast(self, tensors: Tensor | Tensors, *given, **named) -> Work:
        options, tensors = read_options(given, named), _listed(tensors)
        with self._recorded("broadcast", tensors):
            return self._run([self._in_place("broadcast", [tensor], options) for tensor in tensors], tensors, options)

    @shown_to_modes
    def allgather(self, outputs: Sequence, inputs: Tensor | Tensors, *given, **named) -> Work:
        if isinstance(inputs, Tensor):
            outputs, inputs = [outputs], [inputs]
        options, parts = read_options(given, named), list(_only(outputs, "all_gather"))
        self._check_parts(parts, "all_gather")
        with self._recorded("all_gather", inputs):
            source, target = Flat([_only(inputs, "all_gather")]), Flat(parts, filled=False)
            self._check_share(source, target.counts[self.rank()], "all_gather: the input")
            return self._run([Step(call_of("all_gather", sizes=target.counts), source, target)], parts, options)

    @staticmethod
    def _check_share(flat: Flat, expected: int, what: str) -> None:
        if sum(flat.counts) != expected:
            raise InvalidArgument(f"backend tutti: {what} has {sum(flat.counts)} elements where {expected} belong")

    @shown_to_modes
    def all_gather_single(self, output: Tensor, input: Tensor, *given, **named) -> Work:
        return self.all_gather_single_coalesced([output], [input], *given, **named)

    @shown_to_modes
    def all_gather_single_coalesced(self, outputs: Tensors, inputs: Tensors, *given, **named) -> Work:
        options = read_options(given, named)
        with self._recorded("all_gather", inputs):
            steps = []
            for output, input in zip(outputs, inputs, strict=True):
                source, target = Flat([input]), Flat([output], filled=False)
                self._check_share(target, self.size() * source.counts[0], "all_gather: the output")
                steps.append(Step(call_of("all_gather"), source, target))
            return self._run(steps, list(outputs), options)

    @shown_to_modes
    def allgather_coalesced(self, output_lists: Sequence[Tensors], inputs: Tensors, *given, **named) -> Work:
        """``output_lists[r][i]`` becomes ``inputs[i]`` of rank r."""
        options = read_options(given, named)
        self._check_parts(output_lists, "all_gather_coalesced")
        with self._recorded("all_gather", inputs):
            outputs = [tensor for outputs in output_lists for tensor in outputs]
            step = Step(call_of("all_gather"), Flat(list(inputs)), Flat(outputs, filled=False))
            return self._run([step], outputs, options)

    @shown_to_modes
    def gather(self, outputs: Sequence, inputs: Tensor | Tensors, *given, **named) -> Work:
        if isinstance(inputs, Tensor):
            outputs, inputs = [outputs] if outputs else [], [inputs]
        options = read_options(given, named)
        with self._recorded("gather", inputs):
            source, parts, target = Flat([_only(inputs, "gather")]), [], None
            if self.rank() == options.root:
                parts = list(_only(outputs, "gather"))
                self._check_parts(parts, "gather")
                target = Flat(parts, filled=False)
                self._check_share(target, self.size() * source.counts[0], "gather: the output")
            return self._run([Step(call_of("gather", options), source, target)], parts, options)

    @shown_to_modes
    def scatter(self, outputs: Tensor | Tensors, inputs: Sequence, *given, **named) -> Work:
        if isinstance(outputs, Tensor):
            outputs, inputs = [outputs], [inputs] if inputs else []
        options = read_options(given, named)
        with self._recorded("scatter", outputs):
            source, target = None, Flat([_only(outputs, "scatter")], filled=False)
            if self.rank() == options.root:
                parts = list(_only(inputs, "scatter"))
                self._check_parts(parts, "scatter")
                source = Flat(parts)
                self._check_share(source, self.size() * target.counts[0], "scatter: the input")
            return self._run([Step(call_of("scatter", options), source, target)], list(outputs), options)

    @shown_to_modes
    def reduce_scatter(self, outputs: Tensor | Tensors, inputs: Sequence, *given, **named) -> Work:
        if isinstance(outputs, Tensor):
            outputs, inputs = [outputs], [inputs]
        options, parts = read_options(given, named), list(_only(inputs, "reduce_scatter"))
        self._check_parts(parts, "reduce_scatter")
        with self._recorded("reduce_scatter", parts):
            source = Flat(parts, reduced=True)
            target = Flat([_only(outputs, "reduce_scatter")], filled=False)
            self._check_share(target, source.counts[self.rank()], "reduce_scatter: the output")
            step = self._reducing("reduce_scatter", parts[0], options, source, target, source.counts)
            return self._run([step], list(outputs), options)

    @shown_to_modes
    def reduce_scatter_single(self, output: Tensor, input: Tensor, *given, **named) -> Work:
        return self.reduce_scatter_single_coalesced([output], [input], *given, **named)

    @shown_to_modes
    def reduce_scatter_single_coalesced(self, outputs: Tensors, inputs: Tensors, *given, **named) -> Work:
        options = read_options(given, named)
        with self._recorded("reduce_scatter", inputs):
            steps = []
            for output, input in zip(outputs, inputs, strict=True):
                source, target = Flat([input], reduced=True), Flat([output], filled=False)
                self._check_share(source, self.size() * target.counts[0], "reduce_scatter: the input")
                steps.append(self._reducing("reduce_scatter", input, options, source, target))
            return self._run(steps, list(outputs), options)

    @shown_to_modes
    def alltoall(self, outputs: Tensors, inputs: Tensors, *given, **named) -> Work:
        options = read_options(given, named)
        self._check_parts(outputs, "all_to_all")
        self._check_parts(inputs, "all_to_all")
        with self._recorded("all_to_all", inputs):
            source, target = Flat(inputs), Flat(outputs, filled=False)
            call = call_of("all_to_all", sizes=source.counts, recv_sizes=target.counts)
            return self._run([Step(call, source, target)], list(outputs), options)

    @shown_to_modes
    def all_to_all_single(
        self, output: Tensor, input: Tensor, output_splits: Sequence[int], input_splits: Sequence[int], *given, **named
    ) -> Work:
        """Splits count rows; without them all ranks share alike."""
        options = read_options(given, named)
        with self._recorded("all_to_all", [input]):
            source, target = Flat([input]), Flat([output], filled=False)
            call = call_of("all_to_all")
            if output_splits or input_splits:
                call = call_of(
                    "all_to_all",
                    sizes=self._counts(source, input, input_splits),
                    recv_sizes=self._counts(target, output, output_splits),
                )
            return self._run([Step(call, source, target)], [output], options)

    def _counts(self, flat: Flat, tensor: Tensor, splits: Sequence[int]) -> list[int]:
        rows = tensor.shape[0] if tensor.dim() else 1
        if not splits:
            if rows % self.size():
                raise InvalidArgument(f"backend tutti: all_to_all: {rows} rows cannot be shared by {self.size()} ranks")
            splits = [rows // self.size()] * self.size()
        self._check_parts(splits, "all_to_all")
        if sum(splits) != rows:
            raise InvalidArgument(f"backend tutti: all_to_all: the splits {list(splits)} do not add up to {rows} rows")
        width = flat.counts[0] // rows if rows else 0
        return [split * width for split in splits]

    def barrier(self, *given, **named) -> Work:
        with self._recorded("barrier", ()):
            return self._run([Step(call_of("barrier"), None)], [], read_options(given, named))

    # What torch called them before.
    _allgather_base = all_gather_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    _reduce_scatter_base = reduce_scatter_single
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
    alltoall_base = all_to_all_single
