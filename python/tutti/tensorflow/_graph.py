# _graph.py: calls inside tf.function: one operation each, run in the order of the program.
# SPDX-License-Identifier: Apache-2.0
"""A call becomes a NumPy function of the graph. TensorFlow orders stateful operations of one graph by itself, but not
against functions inside it that read variables, nor against branches and loops: those count as users of their
resources only. So that every call of a process has one place in one order, each passes a ticket on: it reads a
resource variable of ours before and writes it after, and TensorFlow keeps reads and writes of a variable in program
order.

It does so wherever it traces Python, but not in one kind of graph: that of the gradients of a function called under a
tape outside of it. Therefore whatever may contain calls is also put into a chain whenever a call is added to its
graph.

The calls run on a private duplicate of the group, from threads of TensorFlow."""

from __future__ import annotations

import contextlib
import contextvars
import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from .. import _native
from .._arrays.flat import new_aligned
from .._errors import InvalidArgument, Unsupported
from ._failures import remember

_MAY_CONTAIN_OURS = ("StatefulPartitionedCall", "If", "Case", "While")  # by their functions; the stateless kinds cannot

_office_of_forward: contextvars.ContextVar[tf.Tensor | None] = contextvars.ContextVar("office_of_forward", default=None)


@functools.cache
def _ticket_variable() -> tf.Variable:
    """Made once, outside of any graph; only its handle is used, so that no tape ever sees it."""
    with tf.init_scope():
        return tf.Variable(0, trainable=False, name="tutti_order")


def ticket_office() -> tf.Tensor | None:
    """The resource as a tensor of the current graph; None in eager code."""
    if tf.executing_eagerly():
        return None
    graph = tf.compat.v1.get_default_graph()
    forward = _office_of_forward.get()
    if forward is not None and _is_inside_gradient_of_control_flow(graph):
        return graph.capture(forward)  # such graphs take in nothing that the loop or branch itself had not
    return graph.capture(_ticket_variable().handle)


@contextlib.contextmanager
def going_back(office: tf.Tensor | None) -> Iterator[None]:
    """Inside, operations are made for the gradient of one whose ticket office was this."""
    token = _office_of_forward.set(office)
    try:
        yield
    finally:
        _office_of_forward.reset(token)


def _is_inside_gradient_of_control_flow(graph: Any) -> bool:
    while isinstance(graph, tf.__internal__.FuncGraph):
        if type(graph).__name__ in ("_WhileBodyGradFuncGraph", "_CondGradFuncGraph"):
            return True
        graph = graph.outer_graph
    return False


def refuse_graph(verb: str) -> None:
    """Raises for the graphs in which a call could not run, or not in order."""
    graph = tf.compat.v1.get_default_graph()
    if not isinstance(graph, tf.__internal__.FuncGraph):
        raise Unsupported(
            f"{verb}: graphs of tf.compat.v1 do not keep calls in order; put it into a tf.function, or call it eagerly"
        )
    if _is_for_xla(graph):
        raise Unsupported(
            f"{verb}: tutti's verbs do not run inside XLA programs of TensorFlow, and this tf.function has"
            " jit_compile=True; leave jit_compile away here (in Keras: model.compile(…, jit_compile=False)), and"
            " compile only the parts between the calls"
        )


def _is_for_xla(graph: Any) -> bool:
    # Not public, but what TensorFlow's own control flow asks. Without it XLA still refuses, naming the operation.
    try:
        from tensorflow.python.ops.control_flow_util import GraphOrParentsInXlaContext
    except ImportError:
        return False
    return GraphOrParentsInXlaContext(graph)


def whether_differentiated(watched: bool) -> tf.Tensor:
    """What a call of a graph tells the other ranks about its part in backward: a constant of the graph, because a tape
    outside of the function is not known while it is traced. If there is one, TensorFlow builds the way back first and
    then, of the same graph, the forward that it runs: what backward_comes changes is in this forward and not in the
    one that runs without a tape."""
    return tf.constant(watched)


def backward_comes(differentiated: tf.Tensor) -> None:
    """The way back through the call to which this constant belongs is being built."""
    differentiated.op._set_attr("value", tf.compat.v1.AttrValue(tensor=tf.make_tensor_proto(True)))


def run_in_graph(
    call: Any, x: tf.Tensor, group: Any, timeout: float | None, *, part: bool, differentiated: tf.Tensor
) -> tf.Tensor:
    """The result of the call as a tensor of the graph. `part`: see _operation.operate."""
    if call.learns_sizes:
        name = "recv_sizes=" if call.verb == "all_to_all" else "sizes="
        raise InvalidArgument(f"{call.verb}: inside tf.function the sizes of all ranks must be given with {name}")
    duplicate = group.duplicate()
    (result,) = _in_order(
        lambda source, differentiated: [_run(call, source, duplicate, timeout, part, bool(differentiated))],
        call.verb,
        [x, differentiated],
        [x.dtype],
    )
    result.set_shape(x.shape if part else static_shape(call, x.shape, group))
    return result


@tf.autograph.experimental.do_not_convert
def barrier(group: Any = None, timeout: float | None = None) -> None:
    """tutti.barrier() as an operation of the tf.function around it: it runs, in its place, whenever that does."""
    group = _native.world() if group is None else group
    call = _native.Call("barrier")
    if tf.executing_eagerly():
        group.run(call, None, timeout=timeout)
        return
    refuse_graph(call.verb)
    duplicate = group.duplicate()
    _in_order(lambda: duplicate.run(call, None, timeout=timeout) or [], call.verb, [], [])


def _in_order(run: Callable[..., list], verb: str, inputs: list[tf.Tensor], dtypes: list[tf.DType]) -> list[tf.Tensor]:
    """An operation that runs `run` on the inputs' arrays after all of ours that precede it in the program."""

    def run_with_ticket(ticket: np.ndarray, *arrays: np.ndarray) -> list[np.ndarray]:
        try:
            return [ticket, *run(*arrays)]
        except Exception as error:
            remember(error)
            raise

    office = ticket_office()
    with tf.control_dependencies(_last_before()):
        ticket = tf.raw_ops.ReadVariableOp(resource=office, dtype=tf.int32)
    passed_on, *results = tf.numpy_function(
        run_with_ticket, [ticket, *inputs], [tf.int32, *dtypes], name=f"tutti_{verb}"
    )
    passed_on.set_shape([])
    tf.compat.v1.get_default_graph()._tutti_last = tf.raw_ops.AssignVariableOp(resource=office, value=passed_on)
    return results


def _last_before() -> list[tf.Operation]:
    """The last operation of the graph that is, or may contain, one of ours; those before it run one by one."""
    graph = tf.compat.v1.get_default_graph()
    last, seen = getattr(graph, "_tutti_last", None), getattr(graph, "_tutti_seen", 0)
    operations = graph.get_operations()
    for operation in operations[seen:]:
        if operation.type in _MAY_CONTAIN_OURS:
            if last is not None and last not in operation.control_inputs:
                operation._add_control_input(last)
            last = operation
    graph._tutti_last, graph._tutti_seen = last, len(operations)
    return [] if last is None else [last]


def _run(
    call: Any, source: np.ndarray, duplicate: Any, timeout: float | None, part: bool, differentiated: bool
) -> np.ndarray:
    out = new_aligned(source.shape if part else output_shape(call, source, duplicate), source.dtype)
    duplicate.run(call, None if part else source, out, differentiated=differentiated, timeout=timeout)
    return out


def output_shape(call: Any, source: np.ndarray, group: Any) -> tuple[int, ...]:
    """The shape of the result; what is refused is made known to the other ranks, so that they do not wait."""
    try:
        return call.output_shape(source.shape, group.rank, group.size)
    except InvalidArgument:
        group.run(call, source, None)  # refuses for the same reason, in front of everybody
        raise


def static_shape(call: Any, shape: tf.TensorShape, group: Any) -> tf.TensorShape:
    """What is known of the result's shape while tracing: lengths that do not depend on an unknown one."""
    if shape.rank is None:
        return tf.TensorShape(None)
    guesses = [call.output_shape(probe_shape(call, shape, group, unit), group.rank, group.size) for unit in (1, 2)]
    return tf.TensorShape([a if a == b else None for a, b in zip(*guesses, strict=True)])


def probe_shape(call: Any, shape: tf.TensorShape, group: Any, unit: int = 1) -> tuple[int, ...]:
    """`shape` with lengths that the call accepts in place of unknown ones."""
    lengths = [unit * group.size if length is None else length for length in shape.as_list()]
    if call.sizes is not None and call.axis is not None and shape.as_list()[call.axis] is None:
        lengths[call.axis] = call.sizes[group.rank] if call.joins else sum(call.sizes)
    return tuple(lengths)
