# compiled_errors.py: errors of calls inside compiled programs, as ours and as the framework's at once.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import functools
from typing import Any

from .._errors import Error


@functools.cache
def _joined(ours: type[Error], theirs: type[BaseException]) -> type[Error]:
    members: dict[str, Any] = {
        "__module__": ours.__module__,
        "__init__": lambda self, *args, **options: None,  # who makes one by calling `theirs` must not undo what it is
        "__str__": lambda self: str(self.args[0]),
    }
    if "__reduce__" not in vars(ours):
        members["__reduce__"] = lambda self: (ours, self.args)  # another process need not have the framework
    return type(ours.__name__, (ours, theirs), members)


def as_both(cause: Error, theirs: type[BaseException], facts: dict[str, Any] | None = None) -> Error:
    """The error as what it is and, for programs that expect that, as what a framework makes of errors in its compiled
    programs. `facts` are attributes that the framework's own would have."""
    kind = _joined(type(cause), theirs)
    made = (OSError if issubclass(kind, OSError) else RuntimeError).__new__(kind)  # TimeoutError's memory is laid out otherwise
    made.args = cause.args
    made.__dict__.update({**(facts or {}), **cause.__dict__})
    return made
