# __init__.py: finds the adapter that serves an object, by its type, without importing a framework.
# SPDX-License-Identifier: Apache-2.0
"""One module per kind of array. Each has

    apply(call, x, out, group, async_op, timeout)    the verb; the result is of x's kind
    pack(leaves) / unpack(flat, leaves)              many arrays of one dtype as one flat array, and back
    unpack_into(flat, outs)                          the same into arrays of the caller (where they can be written)
    dtype_name(x), shape_of(x)                       "float32", (2, 3)
    from_array(array, like)                          native memory as an array of like's kind
    empty(shape, dtype, group)                       an array in memory that local peers reach without a copy
    memory(x, write)                                 what the core reads or writes in a message

and may have

    check(x)                                         raises for arrays that cannot be sent, before the core sees them
    overlaps, packs_a_copy                           several calls may be under way; pack() never gives a leaf itself
    is_writable(x)                                   whether a result can go there
    is_traced(x)                                     whether a compiler is looking, and no value is there yet

and is imported when the first of its arrays is seen.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

from .._errors import InvalidArgument

# By the package and name of a class or one of its bases, so that subclasses (torch.nn.Parameter, numpy.memmap) are
# found and nothing needs to be imported to ask.
_ARRAYS = {
    ("numpy", "ndarray"): "numpy",
    ("numpy", "generic"): "numpy",
    ("torch", "Tensor"): "torch",
    ("jax", "Array"): "jax",
    ("jax", "Tracer"): "jax",
    ("jaxlib", "Array"): "jax",
    ("jaxlib", "ArrayImpl"): "jax",
    ("tensorflow", "Tensor"): "tensorflow",
    ("tensorflow", "Variable"): "tensorflow",
    ("tensorflow", "CompositeTensor"): "tensorflow",
}
_NUMBERS = (bool, int, float, complex)
_TEXTS = (str, bytes)
TREE = "tree"
NOTHING = "nothing"
TEXT = "text"

_kinds: dict[type, str | None] = {type(None): NOTHING}  # None: nothing we know
_adapters: dict[str, ModuleType] = {}  # those imported to their end, which sys.modules does not tell


def _kind_by_bases(cls: type) -> str | None:
    for base in cls.__mro__:
        root = base.__module__.partition(".")[0]
        found = _ARRAYS.get((root, base.__name__.rpartition(".")[2]))
        if found is not None:
            return found
    return None


def _is_pytree(value: Any) -> bool:
    """Whether JAX, if somebody uses it, knows how to take this apart (flax, equinox and chex register their
    classes)."""
    jax = sys.modules.get("jax")
    return jax is not None and hasattr(jax, "tree_util") and not jax.tree_util.all_leaves([value])


def _has_buffer(value: Any) -> bool:
    try:
        memoryview(value).release()
    except TypeError:
        return False
    return True


def _classify(value: Any) -> str | None:
    cls = type(value)
    found = _kind_by_bases(cls)
    if found is not None:
        return found
    if issubclass(cls, _NUMBERS):
        return "numpy"
    if issubclass(cls, _TEXTS):
        return TEXT
    if hasattr(cls, "__dlpack__") or hasattr(cls, "__cuda_array_interface__"):
        return "dlpack"
    # isinstance, not issubclass: TensorFlow's tracked dicts are proxies
    if isinstance(value, (list, tuple, dict)) or hasattr(cls, "__dataclass_fields__") or _is_pytree(value):
        return TREE
    return "dlpack" if _has_buffer(value) else None


def kind_of(value: Any) -> str | None:
    """The name of the adapter; or TREE, NOTHING (None), TEXT; or None for what Tutti cannot send."""
    cls = type(value)
    if cls in _kinds:
        return _kinds[cls]
    kind = _classify(value)
    if kind is not None:  # a class may be registered with JAX later
        _kinds[cls] = kind
    return kind


def get(kind: str) -> ModuleType:
    """The adapter by its name; imports it, and with it its framework."""
    if (adapter := _adapters.get(kind)) is None:
        adapter = _adapters[kind] = importlib.import_module(f"{__name__}.{kind}")  # waits while another thread imports it
    return adapter


def refuse(value: Any, where: str = "", verb: str = "") -> InvalidArgument:
    """The error for something that is no array, saying where in a tree it is and what would be taken."""
    place = f" at {where}" if where else ""
    prefix = f"{verb}: " if verb else ""
    what = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
    if isinstance(value, type):
        hint = "pass an instance, not the class"
    elif kind_of(value) is TEXT or isinstance(value, (set, frozenset)):
        twins = ("broadcast", "all_gather", "gather", "scatter")
        names = f"{verb}_object" if verb in twins else ", ".join(f"{twin}_object" for twin in twins) + " and send_object"
        hint = f"texts and other objects go by {names}"
    else:
        hint = (
            "pass an array of NumPy, PyTorch, JAX or TensorFlow, anything with __dlpack__ or the buffer protocol, "
            "a number, or a list, tuple, dict or dataclass of these"
        )
    return InvalidArgument(f"{prefix}{what}{place} is not an array; {hint}")


def check(adapter: ModuleType, value: Any) -> None:
    """Raises for arrays of a known kind that cannot be sent, where the adapter can tell before the core sees them."""
    checks = getattr(adapter, "check", None)
    if checks is not None:
        checks(value)


def is_traced(value: Any) -> bool:
    """Whether a compiler is looking, and the ranks cannot be asked for what this array's length would tell."""
    asks = getattr(adapter_of(value), "is_traced", None)
    return asks is not None and asks(value)


def adapter_of(value: Any, where: str = "", verb: str = "") -> ModuleType:
    """The adapter that serves this array; raises InvalidArgument for anything that is none."""
    kind = kind_of(value)
    if kind is None or kind is TEXT or kind is NOTHING or kind is TREE:
        raise refuse(value, where, verb)
    return get(kind)
