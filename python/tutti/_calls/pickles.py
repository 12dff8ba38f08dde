# pickles.py: how reductions and calls are pickled: by name, as pickle cannot name functions that C++ makes.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from .. import _native


def op_named(name: str) -> _native.Op:
    """The reduction that name_of() gave this name."""
    return _native.op(name)


def call_decoded(text: str) -> _native.Call:
    """The call that encode() gave this text."""
    return _native.Call.decode(text)
