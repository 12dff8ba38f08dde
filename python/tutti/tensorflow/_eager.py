# _eager.py: calls on eager tensors, straight from their memory into that of the result.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import tensorflow as tf

from .._arrays.flat import new_aligned
from .._errors import InvalidArgument
from ._graph import output_shape
from ._memory import array_of, tensor_of


def _root_tells(call: Any) -> bool:
    """In eager code only the root of a broadcast or scatter need have an array; the others learn shape and dtype."""
    return call.root_gives


def run_now(
    call: Any, x: tf.Tensor, group: Any, timeout: float | None, *, part: bool, tells: bool, differentiated: bool
) -> tf.Tensor:
    """The result of the call. `part` and `tells`: see _operation.operate."""
    source = array_of(x)
    terms = {"differentiated": differentiated, "timeout": timeout}
    if tells and _root_tells(call):
        array = group.run_sized(call, source if group.rank == call.root else None, **terms)
        return _expected(tensor_of(array.numpy()), call, x, group)
    if call.learns_sizes:
        return tensor_of(group.run_sized(call, source, **terms).numpy())
    out = new_aligned(source.shape if part else output_shape(call, source, group), source.dtype)
    group.run(call, None if part else source, out, **terms)
    return tensor_of(out)


def start(call: Any, x: tf.Tensor, group: Any, timeout: float | None) -> Any:
    """The call under way; its wait() gives the result."""
    source = array_of(x)
    if _root_tells(call):
        mine = source if group.rank == call.root else None
        return group.start_sized(
            call, mine, timeout=timeout, finish=lambda array: _expected(tensor_of(array.numpy()), call, x, group)
        )
    if call.learns_sizes:
        return group.start_sized(call, source, timeout=timeout, finish=lambda array: tensor_of(array.numpy()))
    out = new_aligned(output_shape(call, source, group), source.dtype)
    return group.start(call, source, out, timeout=timeout, finish=tensor_of, keep=x)


def _expected(result: tf.Tensor, call: Any, x: tf.Tensor, group: Any) -> tf.Tensor:
    """What the root sent, if it is what the tensor passed off the root says is expected."""
    if call.verb == "broadcast" and (result.shape != x.shape or result.dtype != x.dtype):
        raise InvalidArgument(
            f"rank {group.rank} of {group.size}: broadcast: the root sent {result.dtype.name} of shape"
            f" {tuple(result.shape)}, but the tensor passed here is {x.dtype.name} of shape {tuple(x.shape)}; pass one"
            " like the root's, or None"
        )
    return result
