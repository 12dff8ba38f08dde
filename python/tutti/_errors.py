# _errors.py: what can go wrong. docs/errors.md says when each is raised and what to do.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import functools
from typing import Any


class Error(RuntimeError):
    """Every error of the library. The text says who, what, why and what to try."""


class InvalidArgument(Error, ValueError):
    """The caller's mistake, found on this rank before any byte moved. The group stays usable."""


class Mismatch(Error):
    """Ranks asked for different things in the same call. The group is broken."""


class Timeout(Error, TimeoutError):
    """A deadline passed. From ``wait(timeout)`` it only means "not yet"; otherwise the group is broken."""


class PeerLost(Error):
    """A member of the group is gone; every group that contains it is broken."""

    def __init__(self, text: str, rank: int = -1, host: str = "", reason: str = "") -> None:
        super().__init__(text)
        self.rank = rank  # in the world
        self.host = host
        self.reason = reason

    def __reduce__(self) -> tuple:
        return PeerLost, (str(self), self.rank, self.host, self.reason)


class Aborted(Error):
    """Somebody called abort(), refused its part of the call, or ended the job."""


class RendezvousError(Error):
    """The ranks could not find each other."""


class AuthenticationError(Error):
    """The other side does not know the job's secret, or is not a Tutti rank at all."""


class Unsupported(Error):
    """Asked for something this build, this machine or this framework does not have."""


# As programs name them: a traceback says tutti.Mismatch.
for _error in (
    Error, InvalidArgument, Mismatch, Timeout, PeerLost, Aborted, RendezvousError, AuthenticationError, Unsupported
):  # fmt: skip
    _error.__module__ = "tutti"
del _error


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
