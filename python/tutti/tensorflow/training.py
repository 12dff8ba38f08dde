# training.py: gradients averaged over ranks, for GradientTape and for Keras.
# SPDX-License-Identifier: Apache-2.0
"""With a tape of your own::

    with tutti.tensorflow.GradientTape() as tape:
        loss = loss_of(model(x), y)
    gradients = tape.gradient(loss, model.trainable_variables)      # the mean over all ranks

With Keras::

    tutti.tensorflow.compile(model, optimizer="adam", loss="mse")   # in place of model.compile
    model.fit(x_of_this_rank, y_of_this_rank)

`zero(keras.optimizers.Adam(1e-3))` also shares out the optimiser's state (ZeRO, stages 1 and 2).
"""
from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from .. import _native
from .._errors import InvalidArgument
from .._training.average import average


def custom_vjp(x: Any, forward: Callable[[Any], Any], backward: Callable[[Any], Any]) -> Any:
    """y = forward(x), with backward(gradient of y) for the gradient of x."""

    @tf.custom_gradient
    def function(value: Any) -> Any:
        return forward(value), backward

    return function(tf.convert_to_tensor(x))


def dense(gradient: Any) -> Any:
    """A gradient of rows only (of an embedding) as a whole tensor; everything else as it is."""
    return tf.convert_to_tensor(gradient) if isinstance(gradient, tf.IndexedSlices) else gradient


def average_gradients(gradients: Any, *, weight: Any = None, group: Any = None) -> list:
    """The mean over the ranks of a list of gradients, None among them. Gradients of embeddings are made dense."""
    gradients = [dense(gradient) for gradient in gradients]
    present = [gradient for gradient in gradients if gradient is not None]
    averaged = iter(average(present, weight=weight, group=group) if present else [])
    return [None if gradient is None else next(averaged) for gradient in gradients]


class GradientTape(tf.GradientTape):
    """tf.GradientTape whose gradient() gives means over the ranks.

    weight: the number of samples that the loss averages over on this rank, so that every sample counts alike; it can be
        set later as an attribute. group: the ranks; the world unless given."""

    def __init__(self, *args: Any, weight: Any = None, group: Any = None, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.weight = weight
        self.group = group

    def gradient(self, target: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
        gradients = super().gradient(target, sources, *args, **kwargs)
        flat = average_gradients(tf.nest.flatten(gradients), weight=self.weight, group=self.group)
        return tf.nest.pack_sequence_as(gradients, flat)


def averaging(optimizer: Any, *, group: Any = None) -> Any:
    """A Keras optimiser that averages the gradients over the ranks before it applies them. Gives a new one."""
    import keras

    optimizer = keras.optimizers.get(optimizer)
    if getattr(optimizer, "averages_over_ranks", False):
        raise InvalidArgument("averaging: the optimiser averages already")
    if optimizer.built:
        raise InvalidArgument("averaging: the optimiser is in use; wrap it before the first step")
    base = type(optimizer)

    def apply(self: Any, grads: Any, trainable_variables: Any = None) -> Any:
        return base.apply(self, average_gradients(grads, group=group), trainable_variables)

    made = type(base.__name__, (base,), {"apply": apply, "averages_over_ranks": True})
    return made.from_config(optimizer.get_config())


def __getattr__(name: str) -> Any:
    if name == "zero":
        from ._zero import zero

        return zero
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def broadcast_variables(variables: Any, root: int = 0, *, group: Any = None) -> None:
    """Variables (or a model's) as the root has them, on every rank."""
    variables = list(getattr(variables, "variables", variables))
    values = [tf.convert_to_tensor(variable) for variable in variables]
    call = _native.Call("broadcast", root=root)
    for variable, value in zip(variables, _native.apply(call, values, None, group, False, None), strict=True):
        variable.assign(value)


def compile(model: Any, optimizer: Any = "rmsprop", *, group: Any = None, **options: Any) -> None:
    """model.compile for training on all ranks: the optimiser averages (or is one of averaging(…) or zero(…)), and the
    variables start as rank 0 has them.

    It sets jit_compile=False and says so (as information of the logger "tutti"), because a collective cannot be inside of what XLA compiles for TensorFlow; Keras would
    compile by itself. Asked for jit_compile=True it raises InvalidArgument."""
    if options.get("jit_compile", "auto") not in ("auto", False):
        raise InvalidArgument("compile: jit_compile=True cannot hold a collective; leave it out, and it will be False")
    logging.getLogger("tutti").info("compile: jit_compile=False, as a collective cannot be inside of what XLA compiles")
    if not getattr(optimizer, "averages_over_ranks", False):
        optimizer = averaging(optimizer, group=group)
    model.compile(optimizer=optimizer, **{**options, "jit_compile": False})
    if model.built:
        broadcast_variables(model, group=group)
