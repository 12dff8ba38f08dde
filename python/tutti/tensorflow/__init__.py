# __init__.py: what is special to TensorFlow.
# SPDX-License-Identifier: Apache-2.0
"""Tutti's verbs take TensorFlow's tensors and variables as they are, eagerly and inside tf.function, with gradients::

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = loss_of(model(x), y)
        gradients = tutti.average(tape.gradient(loss, model.trainable_variables))
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))

Inside tf.function

* calls run in the order of the program, in loops, branches and functions inside functions too;
* uneven calls need sizes=, async_op=True and jit_compile=True are refused;
* verbs on NumPy arrays run while the function is traced, as all Python code does; tutti.barrier() is an operation of
  the function.

An error inside tf.function comes out as what it is, tutti.PeerLost for example, and is a tf.errors.OpError as well.
"""
from typing import TYPE_CHECKING

from .._process.later import names_later
from ._failures import cause_of, function, own_errors
from ._failures import install as _install_errors
from ._graph import barrier

_TRAINING = ("training", "GradientTape", "average_gradients", "averaging", "broadcast_variables", "compile", "zero")

__all__ = ["barrier", "cause_of", "function", "own_errors"]

if TYPE_CHECKING:
    from . import training as training
    from ._zero import zero as zero
    from .training import GradientTape as GradientTape
    from .training import average_gradients as average_gradients
    from .training import averaging as averaging
    from .training import broadcast_variables as broadcast_variables
    from .training import compile as compile
else:
    __getattr__, __dir__ = names_later(__name__, dict.fromkeys(_TRAINING, "training"))

_install_errors()
