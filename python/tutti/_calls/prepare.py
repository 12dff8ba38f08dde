# prepare.py: calls that are checked and laid out once and started again and again.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

from .. import adapters
from .._errors import InvalidArgument, Unsupported
from .._native import Call, PreparedCall
from .dispatch import group_or_world

_FIELDS = {"split_axis": "axis", "split_sizes": "sizes"}  # what all_to_all calls them


def prepare(verb: str, x: Any = None, *, out: Any = None, group: Any = None, timeout: Any = None,
            **arguments: Any) -> PreparedCall:
    """A prepared call of a collective: ``prepare("all_reduce", x, op="max", out=x)``. ``start()`` begins it, ``wait()`` gives the
    result; both as often as wanted, with the same arrays, or by ``start(x2)`` with others of the same shape, strides and dtype. To
    prepare is local; each start is a call of the group like any other. Takes NumPy arrays and torch tensors, on every rank. Without
    ``out`` the result is one array that each start overwrites."""
    call = Call(verb, **{_FIELDS.get(name, name): value for name, value in arguments.items()})
    group = group_or_world(group)
    if verb == "barrier":
        return PreparedCall(group, call, None, None, timeout)
    kind = adapters.kind_of(x)
    if kind == "torch":
        from ..torch.prepared import prepare_tensors

        return prepare_tensors(call, x, out, group, timeout)
    if kind != "numpy" or not hasattr(x, "__array_interface__"):
        raise Unsupported(
            f"prepare: {verb} of a {type(x).__module__}.{type(x).__qualname__} cannot be prepared, because its array cannot "
            "be given again and again; pass a NumPy array or a torch tensor, or make the call itself"
        )
    if out is None:
        import numpy as np

        out = np.empty(call.output_shape(x.shape, group.rank, group.size), x.dtype)
    elif adapters.kind_of(out) != "numpy":
        raise InvalidArgument(f"prepare: out is a {type(out).__qualname__}; the result goes into a NumPy array")
    return PreparedCall(group, call, x, out, timeout)
