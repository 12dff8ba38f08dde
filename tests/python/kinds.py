# kinds.py: for tests that say the same in every framework: arrays of each kind, and their gradients.
# SPDX-License-Identifier: Apache-2.0
import importlib

import numpy as np
import pytest


def _why_missing(framework):
    """Imports it here, where no test's time runs."""
    try:
        importlib.import_module(framework)
    except ImportError as error:
        return str(error)
    return None


_MISSING = {name: why for name in ("torch", "jax", "tensorflow") if (why := _why_missing(name))}
_NAMES = ("numpy", "torch", "jax", "tensorflow")
PRESENT = tuple(name for name in _NAMES if name not in _MISSING)
# As parameters of tests: those that are missing are skipped, with the reason.
ALL = [pytest.param(name, marks=pytest.mark.skip(reason=_MISSING[name])) if name in _MISSING else name for name in _NAMES]
DIFFERENTIABLE = ALL[1:]


def make(kind, array):
    """The same numbers as an array of that kind."""
    array = np.asarray(array)
    if kind == "numpy":
        return array.copy()
    if kind == "torch":
        import torch

        return torch.from_numpy(array.copy())
    if kind == "jax":
        import jax.numpy as jnp

        return jnp.asarray(array)
    import tensorflow as tf

    return tf.constant(array)


def numbers(x):
    """An array of any kind as NumPy has it."""
    return x.detach().numpy() if hasattr(x, "detach") else np.asarray(x)


def is_kind(kind, x):
    return type(x).__module__.split(".")[0].removesuffix("lib") == kind


def value_and_grads(kind, fun, *arrays):
    """A scalar function's value and its gradients, as NumPy has them."""
    if kind == "torch":
        leaves = [make(kind, array).requires_grad_() for array in arrays]
        value = fun(*leaves)
        value.backward()
        return numbers(value), [numbers(leaf.grad) for leaf in leaves]
    if kind == "jax":
        import jax

        value, grads = jax.value_and_grad(fun, tuple(range(len(arrays))))(*(make(kind, array) for array in arrays))
        return numbers(value), [numbers(grad) for grad in grads]
    import tensorflow as tf

    leaves = [make(kind, array) for array in arrays]
    with tf.GradientTape() as tape:
        tape.watch(leaves)
        value = fun(*leaves)
    return numbers(value), [numbers(tf.convert_to_tensor(grad)) for grad in tape.gradient(value, leaves)]


def compiled(kind, fun):
    """The function under the framework's compiler (PyTorch: as it is)."""
    if kind == "jax":
        import jax

        return jax.jit(fun)
    if kind == "tensorflow":
        import tensorflow as tf

        return tf.function(fun)
    return fun
