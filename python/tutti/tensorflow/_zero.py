# _zero.py: Keras optimisers whose state is shared out among the ranks: ZeRO, stages 1 and 2.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import math
from typing import Any

import tensorflow as tf

from .. import _native
from .._arrays.runs import SharedRuns
from .._errors import InvalidArgument, Unsupported
from .training import broadcast_variables, dense

# Each element of a variable is stepped by itself: they may be cut anywhere.
ELEMENT_WISE = ("Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "Ftrl", "Lion", "Nadam", "RMSprop", "SGD")
_WHOLE_NORMS = ("clipnorm", "global_clipnorm")  # would be taken of parts


def zero(optimizer: Any, *, clip_norm: float | None = None, element_wise: bool | None = None, group: Any = None) -> Any:
    """A Keras optimiser with its state shared out among the ranks: ZeRO, stages 1 and 2. Gives a new one::

        optimizer = tutti.tensorflow.zero(keras.optimizers.AdamW(1e-3))
        optimizer.apply(gradients, model.trainable_variables)          # gradients of this rank's samples
        tutti.tensorflow.compile(model, optimizer, loss="mse")         # or with Keras

    Gradients are averaged and shared out in one step (`apply(…, weight=n)` weighs them), each rank steps its part, and the
    parts are put together again: variables are the same on every rank, and start as rank 0 has them. A gradient that is
    None counts as 0. clip_norm: gradients are first scaled so that their norm over all ranks' parts is at most that.
    element_wise=True says of a class that is not known here that its variables may be cut anywhere.
    """
    import keras

    optimizer = keras.optimizers.get(optimizer)
    _check(optimizer, element_wise)
    base = type(optimizer)
    made = type(base.__name__, (_Shared, base), {"averages_over_ranks": True})
    result = made.from_config(optimizer.get_config())
    result._runs = _Runs(clip_norm, _native.world() if group is None else group)
    return result


def _check(optimizer: Any, element_wise: bool | None) -> None:
    name = type(optimizer).__name__
    if getattr(optimizer, "averages_over_ranks", False):
        raise InvalidArgument("zero: the optimiser averages over the ranks already; give the plain one")
    if optimizer.built:
        raise InvalidArgument("zero: the optimiser is in use; wrap it before the first step")
    if not (name in ELEMENT_WISE if element_wise is None else element_wise):
        raise Unsupported(
            f"zero: {name} may look at whole arrays, and would see parts of them only; use averaging(…), or say"
            " element_wise=True if it does not"
        )
    for option in _WHOLE_NORMS:
        if getattr(optimizer, option, None) is not None:
            raise Unsupported(f"zero: {option} would be taken of each rank's part; leave it out, and give zero(…, clip_norm=…)")
    if getattr(optimizer, "use_ema", False) or getattr(optimizer, "gradient_accumulation_steps", None):
        raise Unsupported("zero: use_ema and gradient_accumulation_steps keep whole variables; leave them out")


class _Runs:
    """The variables, and this rank's run of those of each dtype. An object of its own: Keras takes lists of variables that
    an optimiser has for parts of its state."""

    def __init__(self, clip_norm: float | None, group: Any):
        self.clip_norm, self.group = clip_norm, group
        self.whole: list[Any] = []
        self.own: list[Any] = []  # variables, one per dtype; the optimiser's state is of these

    def cut(self, variables: Any) -> None:
        """Lays out these variables, which become the same on every rank. Collective."""
        import keras

        self.whole = list(variables)
        dtypes, counts = [str(each.dtype) for each in self.whole], [math.prod(each.shape) for each in self.whole]
        self.shared = SharedRuns("tensorflow", dtypes, counts, self.group)
        with tf.init_scope():
            broadcast_variables(self.whole, group=self.group)
            self.own = [
                keras.Variable(value, dtype=dtype, name=f"run_of_{dtype}")
                for dtype, value in self.shared.own(self._tensors()).items()
            ]

    def _tensors(self) -> list[tf.Tensor]:
        return [tf.convert_to_tensor(variable) for variable in self.whole]

    def values(self) -> list[tf.Tensor]:
        """What the variables hold in this rank's runs."""
        return list(self.shared.own(self._tensors()).values())

    def mean(self, grads: list, weight: Any) -> list[tf.Tensor]:
        """This rank's runs of the mean over the ranks."""
        whole = [
            tf.zeros(variable.shape, variable.dtype) if grad is None else dense(grad)
            for grad, variable in zip(grads, self.whole, strict=True)
        ]
        return list(self.shared.mean(whole, weight, self.clip_norm).values())

    def spread(self) -> None:
        """Everybody's runs to everybody."""
        runs = {dtype: tf.convert_to_tensor(run) for dtype, run in zip(self.shared.layouts, self.own, strict=True)}
        for variable, value in zip(self.whole, self.shared.whole(runs, self._tensors()), strict=True):
            variable.assign(value)
            if getattr(variable, "constraint", None) is not None:
                variable.assign(variable.constraint(variable))


class _Shared:
    """Before a Keras optimiser in the order of classes: that one sees this rank's runs in place of the variables."""

    _runs: _Runs

    def build(self, variables: Any) -> None:
        if self.built:
            return
        if getattr(self, "_exclude_from_weight_decay", None) or getattr(self, "_exclude_from_weight_decay_pattern", None):
            raise Unsupported("zero: exclude_from_weight_decay goes by variables, which are cut here; leave it out")
        self._runs.cut(variables)
        super().build(self._runs.own)

    @tf.autograph.experimental.do_not_convert
    def apply(self, grads: Any, trainable_variables: Any = None, *, weight: Any = None) -> None:
        """One step. Collective. weight: this rank's samples, so that every sample counts alike."""
        grads, runs = list(grads), self._runs
        if not self.built:
            self.build(trainable_variables)
        if len(grads) != len(runs.whole):
            raise InvalidArgument(f"zero: {len(grads)} gradients came for {len(runs.whole)} variables")
        for run, value in zip(runs.own, runs.values(), strict=True):
            run.assign(value)  # somebody may have loaded others meanwhile
        super().apply(runs.mean(grads, weight), runs.own)
        runs.spread()

    def memory(self) -> dict[str, int]:
        """Bytes on this rank: of the optimiser's state."""
        state = [variable for variable in self.variables if len(variable.shape) > 0]
        return {"state": sum(math.prod(v.shape) * tf.as_dtype(v.dtype).size for v in state)}
